// Package table is the lease.Store over rows. It sends a dialect's statements down the lanes and
// retries what was certainly not applied. If an outcome is unknown, it asks again with the same
// owner and confirms what it finds. It turns the database's errors into ours.
package table

import (
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

func vanished(what string) error {
	return fmt.Errorf("%w: %s: is there a trigger or a row policy on the table?", lease.ErrCorrupt,
		what)
}

// Options configure a Store.
type Options struct {
	// Began is called after the store has begun an era of the table; see package era. May be nil.
	Began func(start int64)
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
	// TraceNeeds is how many connections the pool must have for the trace, if it has fewer; 0: it
	// has enough. The trace borrows one more than the lanes and Listen.
	TraceNeeds int
	// RequireSync has every lane refuse a server that would acknowledge a commit that no other server
	// has.
	RequireSync bool
	// Relax has a release wait for no disk and no standby, where a session can do that for one
	// transaction.
	Relax bool
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
	desk     desk
	single   bool         // one lane
	sync     *synchronous // nil unless a commit must wait for another server
	relax    bool         // Options.Relax

	optimistic bool // keys cannot be shared
	joins      gather
	leaves     gather
	emptied    glance
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

// tables is what tells a Store's tables from any others: two copies of a database have the same
// instance, and so have the tables of a prefix that were copied to another.
type tables struct {
	instance, schema, prefix string
	home                     int
}

// Tables returns a value that is equal for stores on the same tables and with the same home,
// whatever their pools. Tables that were copied with all their rows cannot be told apart.
func (s *Store) Tables() any {
	names := s.d.Names()
	return tables{s.instance, names.Schema, names.Prefix, names.Home}
}

// Dialect is the one that Open was given, with the schema of the tables.
func (s *Store) Dialect() *sqlstore.Dialect { return s.d }

// Instance names the tables beyond this process, as Tables does within it, whatever their home.
func (s *Store) Instance() string { return s.instance + " " + s.d.Names().Prefix }

// Era is the token that the newest era which this store grants in begins after.
func (s *Store) Era() int64 { return s.eras.Newest() }

// HoldEras has grants in later eras fail with seam.ErrNewEra.
func (s *Store) HoldEras() (admit func(start int64), free func()) { return s.eras.Hold() }

var _ seam.EraGate = (*Store)(nil)

// Close ends every Listen, runs what is pending to its end and closes the connections.
func (s *Store) Close() error {
	s.hints.close()
	s.desk.close()
	s.lanes.Close()
	s.eras.Close()
	return nil
}
