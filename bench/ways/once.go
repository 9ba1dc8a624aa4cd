package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/once"
)

// openOnce: the floor is the transaction that is to be done once, an order of one row, through
// database/sql as its owner would write it; then the same with one statement more and with two,
// which is what once.Do costs without a result to keep and with one.
func openOnce(ctx context.Context, d *rig.Database, goroutines int) (*field, error) {
	table := d.Prefix + "orders"
	f := &field{make: func(context.Context, string) error { return nil }}
	if _, err := d.Pool.ExecContext(ctx, `CREATE TABLE `+table+` (id VARCHAR(60) NOT NULL PRIMARY KEY, total BIGINT NOT NULL)`); err != nil {
		return nil, err
	}
	f.closers = append(f.closers, func() { _, _ = d.Pool.ExecContext(context.Background(), `DROP TABLE `+table) })
	d.Pool.SetMaxIdleConns(2 * goroutines)
	o, err := once.New(d.Pool, d.Dialect, nil)
	if err != nil {
		f.close()
		return nil, err
	}
	f.closers = append([]func(){func() { _ = o.Close() }}, f.closers...)
	insert := d.SQL(`INSERT INTO ` + table + ` (id, total) VALUES (?, ?)`)
	order := func(ctx context.Context, tx *sql.Tx, id string) error {
		_, err := tx.ExecContext(ctx, insert, id, 42)
		return err
	}
	do := func(result []byte) func(ctx context.Context, key string) error {
		return func(ctx context.Context, key string) error {
			res, err := o.Do(ctx, once.Request{Key: key}, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
				return result, order(ctx, tx, key)
			})
			if err == nil && res.Replayed {
				err = fmt.Errorf("%q was done before", key)
			}
			return err
		}
	}
	f.contenders = []race.Contender{
		{Name: "once, floor: the order alone", Series: 'f', Fresh: true, Pair: inTx(d.Pool, order, 1)},
		{Name: "the order and one row more", Series: 'g', Fresh: true, Pair: inTx(d.Pool, order, 2)},
		{Name: "once.Do, nothing to keep", Series: 'h', Fresh: true, Pair: do(nil)},
		{Name: "once.Do", Series: 'i', Fresh: true, Pair: do([]byte(`{"id":"7Q3K","total":42}`))},
	}
	return f, nil
}

func inTx(db *sql.DB, order func(context.Context, *sql.Tx, string) error, rows int) func(context.Context, string) error {
	return func(ctx context.Context, key string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		for n := range rows {
			if err := order(ctx, tx, fmt.Sprint(key, "/", n)); err != nil {
				return err
			}
		}
		return tx.Commit()
	}
}
