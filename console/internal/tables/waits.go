package tables

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Waited is a key that is waited for.
type Waited struct {
	Key string
	// Queued are waiters of fair clients, each with a ticket. Processes are those with waiters that
	// are in no order: how many each of them has is known to it alone.
	Queued, Processes int
	Placement         int
	// Held says that the key has a holder, and Shared that it has several.
	Held, Shared   bool
	Identity, Note string
	Age            time.Duration
}

// Waited returns the keys with a prefix for which most wait.
func (t *Tables) Waited(ctx context.Context, prefix string, limit int) ([]Waited, error) {
	above, last := t.bounds(prefix)
	return query(ctx, t, "waited", []any{above, last, limit}, func(r *sql.Rows) (w Waited, err error) {
		var key, owner []byte
		var note string
		var live bool
		var age int64
		err = conn.UnlessBad(conn.ScanSQL(r, &key, &w.Queued, &w.Processes, &w.Placement, &owner, &note, &live,
			&age))
		w.Key, w.Held, w.Age = t.own(key), live && len(owner) > 0, micros(age)
		w.Identity, w.Note = lease.SplitNote(note)
		if w.Held {
			var group lease.Owner
			copy(group[:], owner)
			_, w.Shared = lease.ReaderGroupToken(group)
		}
		return w, err
	})
}

// Edge says that one chain waits for a key that another holds.
type Edge struct {
	lease.Edge
	Process bool
}

// Edges returns which chains wait for which others because of a key with a prefix.
func (t *Tables) Edges(ctx context.Context, prefix string, limit int) ([]Edge, error) {
	above, last := t.bounds(prefix)
	return query(ctx, t, "edges", []any{above, last, limit}, func(r *sql.Rows) (e Edge, err error) {
		var from, to, key []byte
		var note string
		var waited int64
		err = conn.ScanSQL(r, &from, &to, &key, &e.Token, &note, &e.Process, &waited)
		if err == nil && (len(from) != len(e.From) || len(to) != len(e.To)) {
			// Cut to size, two chains might look like one, and like a cycle.
			err = fmt.Errorf("%w: a chain that waits for %q is called %x", lease.ErrCorrupt, key, from)
		}
		copy(e.From[:], from)
		copy(e.To[:], to)
		e.Key, e.Waited = t.own(key), micros(waited)
		if e.Identity, note = lease.SplitNote(note); e.Identity == "" {
			e.Identity = note // a chain has an identity and no note
		}
		return e, err
	})
}

// Kinds of waiters.
const (
	Queue   = 0 // a ticket of a fair client, in the order of the queue
	Process = 1 // a process with waiters in no order
	Chain   = 2 // a caller that holds other keys meanwhile; it may be one of the others too
)

// Waiter waits for a key.
type Waiter struct {
	Kind           int
	Identity, Note string
	// Waited is how long a chain has waited. Alive is how long the waiter is counted without
	// another heartbeat.
	Waited, Alive time.Duration
}

// Waiters returns who waits for a key: the queue in its order, then the others.
func (t *Tables) Waiters(ctx context.Context, key string, limit int) ([]Waiter, error) {
	full := []byte(t.space + key)
	return query(ctx, t, "waiters", []any{full, full, limit}, func(r *sql.Rows) (w Waiter, err error) {
		var note string
		var waited, alive int64
		err = conn.UnlessBad(conn.ScanSQL(r, &w.Kind, &note, &waited, &alive))
		w.Identity, w.Note = lease.SplitNote(note)
		if w.Kind == Chain && w.Identity == "" {
			w.Identity, w.Note = w.Note, ""
		}
		w.Waited, w.Alive = micros(waited), micros(alive)
		return w, err
	})
}
