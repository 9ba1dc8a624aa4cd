// Package waitlist reads from the tables which keys are waited for.
package waitlist

import (
	"context"
	"database/sql"
	"embed"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/statement"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/internal/conn"
)

//go:embed *.sql
var files embed.FS

// List reads one set of tables.
type List struct {
	db         *sql.DB
	statements map[string]string
}

// Of returns the list of a database.
func Of(t *target.Target) *List {
	return &List{db: t.DB, statements: statement.Labeled(files, t.Kind, t.Names())}
}

// Key says how many wait for a key.
type Key struct {
	Key string
	// Queued are waiters of fair clients, each with a ticket. Processes are those with waiters that
	// are not: how many each of them has is known to it alone.
	Queued, Processes int
}

// Keys returns keys that are waited for, in their order, after a key.
func (l *List) Keys(ctx context.Context, after string, limit int) ([]Key, error) {
	return statement.Rows(ctx, l.db, l.statements["waited-keys"], []any{[]byte(after), limit}, func(r *sql.Rows) (Key, error) {
		var key []byte
		var k Key
		err := conn.ScanSQL(r, &key, &k.Queued, &k.Processes)
		k.Key = string(key)
		return k, conn.UnlessBad(err)
	})
}
