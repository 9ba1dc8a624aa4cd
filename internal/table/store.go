// Package table is the lease.Store over rows. It sends a dialect's statements down the lanes and
// retries what was certainly not applied. If an outcome is unknown, it asks again with the same
// owner and confirms what it finds. It turns the database's errors into ours.
package table

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

func vanished(what string) error {
	return fmt.Errorf("%w: %s: is there a trigger or a row policy on the table?", lease.ErrCorrupt,
		what)
}

// Options configure a Store.
type Options struct {
	// Lanes is how many connections to keep.
	Lanes int
	// Strategy is what an acquire tries first.
	Strategy sqlstore.Strategy
	// Timeout bounds one statement.
	Timeout time.Duration
	// Evicts has Open check whether this user may do what Evict does, and warn if not.
	Evicts bool
	// Limit bounds a call that asks for no lease and whose ctx has no deadline, to within a
	// second; 0 means 30 s. The TTL bounds a call that asks for leases.
	Limit time.Duration
	// Hints lets Listen borrow one more connection of the pool while it listens.
	Hints bool
	// Watch is how often Listen checks whether the database has changed, if the server sends no
	// messages; 0 means 10 ms.
	Watch time.Duration
	// Optimistic says that the dialect locks no row that it only reads. The queue does, so Open
	// does not try it and callers must not use it. A user who may not raise floors or delete is
	// let in, but cannot sweep.
	Optimistic bool
}

// Store keeps leases as rows.
type Store struct {
	*engine
	instance string // of the tables
	hints    hints
	single   bool // one lane
}

var (
	_ lease.Store      = (*Store)(nil)
	_ lease.TxReleaser = (*Store)(nil)
	_ lease.Sweeper    = (*Store)(nil)
	_ lease.Passer     = (*Store)(nil)
	_ lease.Registry   = (*Store)(nil)
	_ lease.Notifier   = (*Store)(nil)
	_ lease.Settler    = (*Store)(nil)
	_ lease.Waker      = (*Store)(nil)
	_ lease.Census     = (*Store)(nil)

	_ lease.RenewingFencer = (*Store)(nil)
)

// Settle returns when everything that runs has ended, or with ctx. Until then, an acquire whose
// caller has left can be granted.
func (s *Store) Settle(ctx context.Context) { s.lanes.Settle(ctx) }

// Close ends every Listen, runs what is pending to its end and closes the connections.
func (s *Store) Close() error {
	s.hints.close()
	s.lanes.Close()
	return nil
}
