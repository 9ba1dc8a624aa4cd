// Package observe tells readers what becomes of keys. It compares listings of the store: one
// goroutine lists for all readers of a client, however many there are, and no reader holds up
// another.
package observe

import "github.com/rowlockdb/rowlock/lease"

func eventOf(kind lease.EventKind, r *lease.Record) lease.Event {
	e := lease.Event{Kind: kind, Key: r.Key, Token: r.Token}
	e.Identity, e.Note = lease.SplitNote(r.Note)
	if r.Held {
		e.Remaining = max(0, r.Remaining) // a database may read the clock once more after it has compared
	}
	return e
}
