package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/dialect/postgres"
)

const key = "bench/fenced"

// field is a client, and the row that its key protects.
type field struct {
	d        *rig.Database
	locks    *rowlock.Client
	pgx      *pgxpool.Pool // nil: not on PostgreSQL
	table    string
	row, add string // the statements
}

func newField(ctx context.Context, d *rig.Database) (f *field, err error) {
	f = &field{d: d, table: d.Prefix + "fenced"}
	f.add = `UPDATE ` + f.table + ` SET n = n + 1 WHERE id = 1`
	if f.row = `SELECT n FROM ` + f.table + ` WHERE id = 1`; d.Driver != "sqlite" {
		f.row += ` FOR UPDATE`
	}
	for _, query := range []string{
		`CREATE TABLE ` + f.table + ` (id INT PRIMARY KEY, n INT NOT NULL)`, `INSERT INTO ` + f.table + ` VALUES (1, 0)`,
	} {
		if _, err := d.Pool.ExecContext(ctx, query); err != nil {
			return nil, err
		}
	}
	if d.Driver == "pgx" {
		if f.pgx, err = native(ctx, d); err != nil {
			return nil, err
		}
	}
	config := &rowlock.Config{Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true}}
	f.locks, err = rowlock.Open(d.Pool, d.Dialect, config)
	return f, err
}

// native is a pool of pgx itself.
func native(ctx context.Context, d *rig.Database) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(d.Source)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.ConnConfig.DialFunc = 16, d.Wire.Dial
	return pgxpool.NewWithConfig(ctx, config)
}

func (f *field) close() error {
	if f.pgx != nil {
		f.pgx.Close()
	}
	_, err := f.d.Pool.Exec(`DROP TABLE ` + f.table)
	return errors.Join(f.locks.Close(), err)
}

// contenders are the ways to do it, and first the one without a lock.
func (f *field) contenders() []race.Contender {
	all := []race.Contender{
		{Name: "SELECT FOR UPDATE", Series: 'r', Pair: f.raw},
		{Name: "Unlock", Series: 'u', Pair: f.byHand(false)},
		{Name: "UnlockTx", Series: 't', Pair: f.byHand(true)},
		{Name: "DoTx", Series: 'd', Pair: f.doTx},
	}
	if f.pgx != nil {
		all = append(all, race.Contender{Name: "DoTx of pgx", Series: 'p', Pair: f.doTxOfPgx})
	}
	return all
}

func (f *field) raw(ctx context.Context, _ string) error {
	return f.inTx(ctx, func(tx *sql.Tx) error {
		var n int
		return tx.QueryRowContext(ctx, f.row).Scan(&n)
	}, nil)
}

// byHand releases within the transaction, or after it.
func (f *field) byHand(within bool) func(context.Context, string) error {
	return func(ctx context.Context, _ string) error {
		l, err := f.locks.Lock(ctx, key)
		if err != nil {
			return err
		}
		var release func(*sql.Tx) error
		if within {
			release = func(tx *sql.Tx) error { return l.UnlockTx(ctx, tx) }
		}
		err = f.inTx(ctx, func(tx *sql.Tx) error { return l.Fence(ctx, tx) }, release)
		return errors.Join(err, l.Unlock(ctx))
	}
}

func (f *field) inTx(ctx context.Context, before, after func(*sql.Tx) error) error {
	tx, err := f.d.Pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := before(tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, f.add); err != nil {
		return err
	}
	if after != nil {
		if err := after(tx); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (f *field) doTx(ctx context.Context, _ string) error {
	return f.locks.DoTx(ctx, key, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, f.add)
		return err
	})
}

func (f *field) doTxOfPgx(ctx context.Context, _ string) error {
	return postgres.DoTx(ctx, f.locks, f.pgx, key, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, f.add)
		return err
	})
}
