// Package bed tests on a database what rowlock promises in a transaction of a stack: of gorm, bun,
// ent and so on. Each stack says how it begins a transaction, and Run does the rest.
package bed

import (
	"context"
	"database/sql"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/examples/stacks/internal/demo"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/schema"
)

// Database is an empty database with rowlock's tables, a table of accounts, and alice's account of
// 100.
type Database struct {
	*testdb.Env
	DSN string
}

// Each calls f with a database of each kind in kinds: "sqlite", "postgres", "mariadb", "mysql".
func Each(t *testing.T, kinds []string, f func(t *testing.T, db Database)) {
	t.Helper()
	for _, kind := range testdb.Kinds {
		for _, name := range kinds {
			if kind.Name == name {
				t.Run(name, func(t *testing.T) { f(t, open(t, kind)) })
			}
		}
	}
}

// All are the kinds of databases that database/sql reaches.
var All = []string{"sqlite", "postgres", "mariadb", "mysql"}

func open(t *testing.T, kind testdb.Kind) Database {
	t.Helper()
	dsn := kind.Fresh(t)
	db := Database{&testdb.Env{Kind: kind, Dialect: kind.New(), Source: dsn}, dsn}
	db.DB = db.Pool(t)
	if err := schema.Migrate(t.Context(), db.DB, db.Dialect); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, demo.Table)
	db.Exec(t, demo.Row)
	return db
}

// Balance is what alice has, as committed.
func (d Database) Balance(t *testing.T) (balance int64) {
	t.Helper()
	const query = `SELECT balance FROM account WHERE id = 'alice'`
	if err := d.DB.QueryRowContext(t.Context(), query).Scan(&balance); err != nil {
		t.Fatal(err)
	}
	return balance
}

// Tx is a transaction of a stack, and how the stack gives it to rowlock.
type Tx struct {
	Fence    func(ctx context.Context, l *rowlock.Lock) error
	UnlockTx func(ctx context.Context, l *rowlock.Lock) error
	Once     func(ctx context.Context, o *once.Once, r once.Request, f Effect) (once.Result, error)
	TryLock  func(ctx context.Context, l *forupdate.Locker, key string) error
	// Deposit adds to alice's balance by the stack's own means.
	Deposit          func(ctx context.Context, amount int64) error
	Commit, Rollback func() error
	SQL              *sql.Tx // nil if the transaction is another library's
}

// Effect is what happens once.
type Effect func(ctx context.Context) ([]byte, error)

// Stack opens rowlock on Pool and begins transactions.
type Stack struct {
	Pool    *sql.DB
	Dialect dialect.Dialect
	Begin   func(ctx context.Context) (Tx, error)
	// Guesses says that Unlock inside an open transaction is refused after its whole timeout only,
	// because rowlock cannot ask the transaction whether it is over.
	Guesses bool
}

// OnSQL returns a Tx of a stack whose transaction is a *sql.Tx underneath. fences is what it gives
// to Fence and UnlockTx.
func OnSQL(tx *sql.Tx, fences lease.Tx, deposit func(ctx context.Context, amount int64) error) Tx {
	return Tx{
		Fence:    func(ctx context.Context, l *rowlock.Lock) error { return l.Fence(ctx, fences) },
		UnlockTx: func(ctx context.Context, l *rowlock.Lock) error { return l.UnlockTx(ctx, fences) },
		Once: func(ctx context.Context, o *once.Once, r once.Request, f Effect) (once.Result, error) {
			return o.In(ctx, tx, r, func(ctx context.Context, _ *sql.Tx) ([]byte, error) { return f(ctx) })
		},
		TryLock: func(ctx context.Context, l *forupdate.Locker, key string) error {
			return l.TryLock(ctx, tx, key)
		},
		Deposit: deposit,
		Commit:  tx.Commit, Rollback: tx.Rollback, SQL: tx,
	}
}
