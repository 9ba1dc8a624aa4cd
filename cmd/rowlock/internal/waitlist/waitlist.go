// Package waitlist reads from the tables who waits for which key.
package waitlist

import (
	"context"
	"database/sql"
	"embed"
	"time"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/statement"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
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

// Waiter is one that waits for a key.
type Waiter struct {
	// Kind is "queue" for a ticket of a fair client, in the order of the queue; "process" for a
	// process with waiters that are in no order; and "caller" for a caller that waits while it
	// holds other keys, which may be one of the others too.
	Kind           string
	Identity, Note string
	// Alive is how long one of a queue, or a process, is counted without another heartbeat; Waited how
	// long a caller has waited.
	Alive, Waited time.Duration
}

// most bounds what is read of one key.
const most = 10_000

// Waiters returns who waits for a key: the queue in its order, then the others.
func (l *List) Waiters(ctx context.Context, key string) ([]Waiter, error) {
	args := []any{[]byte(key), most}
	queue, err := statement.Rows(ctx, l.db, l.statements["waited-key"], args, func(r *sql.Rows) (Waiter, error) {
		var queued bool
		var note string
		var alive int64
		err := conn.UnlessBad(conn.ScanSQL(r, &queued, &note, &alive))
		w := Waiter{Kind: "process", Alive: conn.Duration(alive)}
		if queued {
			w.Kind = "queue"
		}
		w.Identity, w.Note = lease.SplitNote(note)
		return w, err
	})
	if err != nil {
		return nil, err
	}
	callers, err := statement.Rows(ctx, l.db, l.statements["waiting-callers"], args, func(r *sql.Rows) (Waiter, error) {
		var note string
		var waited int64
		err := conn.UnlessBad(conn.ScanSQL(r, &note, &waited))
		w := Waiter{Kind: "caller", Waited: conn.Duration(waited)}
		w.Identity, w.Note = lease.SplitNote(note)
		if w.Identity == "" { // a caller has an identity and no note
			w.Identity, w.Note = w.Note, ""
		}
		return w, err
	})
	return append(queue, callers...), err
}
