package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// orders is a table with what must be written once.
type orders struct {
	d     *rig.Database
	table string
	n     int
}

func newOrders(ctx context.Context, d *rig.Database) (*orders, error) {
	o := &orders{d: d, table: d.Prefix + "orders"}
	_, err := d.Pool.ExecContext(ctx, `CREATE TABLE `+o.table+` (id VARCHAR(60) NOT NULL PRIMARY KEY, total BIGINT NOT NULL)`)
	return o, err
}

func (o *orders) close() error {
	_, err := o.d.Pool.Exec(`DROP TABLE ` + o.table)
	return err
}

// next is the id of a new order.
func (o *orders) next() string {
	o.n++
	return fmt.Sprintf("order-%07d", o.n)
}

// insert is one round trip everywhere: pgx knows the statement, and go-sql-driver would first
// prepare one with parameters.
func (o *orders) insert(ctx context.Context, tx *sql.Tx, id string) error {
	if o.d.Driver == "pgx" {
		_, err := tx.ExecContext(ctx, `INSERT INTO `+o.table+` (id, total) VALUES ($1, 42)`, id)
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO `+o.table+` (id, total) VALUES ('`+id+`', 42)`)
	return err
}

// beside writes an order and a row more, whose unique key is what refuses a repeat.
func (o *orders) beside(ctx context.Context) error {
	return inTx(ctx, o.d.Pool, func(tx *sql.Tx) error {
		id := o.next()
		if err := o.insert(ctx, tx, id+"/key"); err != nil {
			return err
		}
		return o.insert(ctx, tx, id)
	})
}

// beginner is a pool, or one of its connections.
type beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

func inTx(ctx context.Context, db beginner, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}
