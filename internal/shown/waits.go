package shown

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
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

// Waited returns the keys with a prefix for which most wait. A waiter is an identity whose waits
// alone count, or "".
func (t *Tables) Waited(ctx context.Context, prefix, waiter string, limit int) ([]Waited, error) {
	above, last := t.bounds(prefix)
	note := lease.StoredNote(waiter, "")
	return query(ctx, t, "waited", []any{above, last, note, limit}, func(r *sql.Rows) (w Waited, err error) {
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

// Waiter is a call in the queue, or all that the others of one name have told.
type Waiter struct {
	Identity, Note string
	Queued         bool // a ticket of a fair client
	// Processes are those that wait without a ticket. Calls are theirs that hold other keys
	// meanwhile: how many more there are is known to the process alone.
	Processes, Calls int
	// Waited is for how long the oldest has waited, or 0: a call that holds nothing does not tell.
	// Alive is how long the waiter is counted without another heartbeat.
	Waited, Alive time.Duration
	Holds         []string // what it holds meanwhile
}

// Waiters are those of a key, or the first of them if there may be More.
type Waiters struct {
	All  []Waiter
	More bool
}

// told is a row of the statement.
type told struct {
	Waiter
	kind   int // 0 a ticket, 1 a process, 2 a call that holds other keys, 3 a process that does
	caller string
}

// Waiters returns what waits for a key: the queue in its order, then the others, by name.
func (t *Tables) Waiters(ctx context.Context, key string, limit int) (Waiters, error) {
	full := []byte(t.space + key)
	rows, err := query(ctx, t, "waiters", []any{full, full, limit}, func(r *sql.Rows) (w told, err error) {
		var note string
		var waited, alive int64
		var caller, held []byte
		err = conn.UnlessBad(conn.ScanSQL(r, &w.kind, &note, &waited, &alive, &caller, &held))
		if w.Identity, w.Note = lease.SplitNote(note); w.kind > 1 && w.Identity == "" {
			w.Identity, w.Note = w.Note, ""
		}
		w.caller, w.Waited, w.Alive = string(caller), micros(waited), micros(alive)
		if held != nil && strings.HasPrefix(string(held), t.space) {
			w.Holds = []string{t.own(held)}
		}
		return w, err
	})
	return Waiters{byName(rows), len(rows) >= limit}, err
}

// byName has one waiter for each ticket, and one for all else of a name: a process tells that it
// waits, and again what it holds meanwhile. The only ticket of a name is told of beside it.
func byName(rows []told) (all []Waiter) {
	const several = -1 // tickets of a name
	at, seen := make(map[string]int), make(map[string]bool)
	for _, r := range rows {
		i, known := at[r.Identity]
		if r.kind == 0 || !known || i == several || r.kind == 1 && all[i].Queued {
			i = len(all)
			all = append(all, Waiter{Identity: r.Identity, Queued: r.kind == 0})
			if at[r.Identity] = i; r.kind == 0 && known {
				at[r.Identity] = several
			}
		}
		w := &all[i]
		switch first := !seen[r.caller]; {
		case r.kind == 0:
			w.Note = r.Note
		case r.kind == 1:
			w.Processes++
		case r.kind == 2 && first:
			w.Calls++
		}
		seen[r.caller] = true
		w.Waited, w.Alive = max(w.Waited, r.Waited), max(w.Alive, r.Alive)
		for _, key := range r.Holds {
			if !slices.Contains(w.Holds, key) {
				w.Holds = append(w.Holds, key)
			}
		}
	}
	return all
}
