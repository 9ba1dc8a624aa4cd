// Package table is the lease.Store over rows. It sends a dialect's statements down the pinned
// connections and retries what was certainly not applied. If an outcome is unknown, it asks again
// with the same owner and confirms what it finds. It turns the database's errors into ours.
package table

import (
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Store keeps leases as rows.
type Store struct {
	*engine
	instance string        // of the tables
	sets     sqlstore.Sets // that the tables have
	hints    hints
	desk     desk
	single   bool         // one pinned connection
	sync     *synchronous // nil unless a commit must wait for another server
	relax    bool         // Options.Relax

	optimistic bool // keys cannot be shared
	joins      gather
	leaves     gather
	ends       gather
}

var (
	_ lease.Table      = (*Store)(nil)
	_ lease.Settler    = (*Store)(nil)
	_ lease.Waker      = (*Store)(nil)
	_ lease.Census     = (*Store)(nil)
	_ adapter.EraGate  = (*Store)(nil)
	_ adapter.TxPasser = (*Store)(nil)
)

// tables is what tells a Store's tables from any others: two copies of a database have the same
// instance, and so have the tables of a prefix that were copied to another.
type tables struct {
	instance, schema, prefix string
	placement                int
}

// Tables returns a value that is equal for stores on the same tables and with the same placement,
// whatever their pools. Tables that were copied with all their rows cannot be told apart.
func (s *Store) Tables() any {
	names := s.d.Names()
	return tables{s.instance, names.Schema, names.Prefix, names.Placement}
}

// Transactor runs transactions of the tables' database.
func (s *Store) Transactor() adapter.Transactor { return Transactor{s.d} }

// Dialect is the one that Open was given, with the schema of the tables.
func (s *Store) Dialect() *sqlstore.Dialect { return s.d }

// Instance names the tables beyond this process, as Tables does within it, of every placement.
func (s *Store) Instance() string { return s.instance + " " + s.d.Names().Prefix }

// Era is the token that the newest era which this store grants in begins after.
func (s *Store) Era() lease.Token { return s.eras.Newest() }

// HoldEras has grants in later eras fail with adapter.ErrNewEra.
func (s *Store) HoldEras() (admit func(start lease.Token), free func()) { return s.eras.Hold() }

// Relaxes reports whether a release may be less durable than a grant. rowlock.New refuses that with
// Config.DurableRelease. On MySQL and MariaDB the setting is the server's, and none is.
func (s *Store) Relaxes() bool { return s.relax && s.d.Name() != "mysql" }

// RequiresSync reports whether every pinned connection has refused a server whose commits wait for
// no other. See lease.SyncRequirer.
func (s *Store) RequiresSync() bool { return s.sync != nil }

// Close ends every Listen, runs what is pending to its end and closes the connections.
func (s *Store) Close() error {
	s.hints.close()
	s.desk.close()
	s.connections.Close()
	s.eras.Close()
	return nil
}

// Measure returns what the store knows of its connections.
func (s *Store) Measure() adapter.Measures {
	m := s.connections.Measure()
	m.Listening = s.hints.sources.Load() > 0
	return m
}
