// Package entgo has rowlock in transactions of ent. ent's own *Tx shows no *sql.Tx, so that the
// transaction is begun on the pool, and ent gets a client inside it.
package entgo

import (
	"context"
	"database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/rowlockdb/rowlock/examples/stacks/entgo/ent"
)

// In returns ent's client inside tx. name is ent's name of the database: dialect.Postgres,
// dialect.MySQL or dialect.SQLite.
func In(tx *sql.Tx, name string) *ent.Client {
	inner := entsql.NewDriver(name, entsql.Conn{ExecQuerier: tx})
	return ent.NewClient(ent.Driver(driver{inner}))
}

// driver begins no transaction, as ent wants to for some writes: it is in one.
type driver struct{ *entsql.Driver }

func (d driver) Tx(context.Context) (dialect.Tx, error) { return dialect.NopTx(d), nil }

// BeginTx is Tx: ent calls it if the client's BeginTx is.
func (d driver) BeginTx(context.Context, *entsql.TxOptions) (dialect.Tx, error) {
	return dialect.NopTx(d), nil
}

// Close leaves the transaction to its owner.
func (driver) Close() error { return nil }
