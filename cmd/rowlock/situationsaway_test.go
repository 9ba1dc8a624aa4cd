package main

import (
	"log/slog"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// bridged is a client of a bridge that has moved the key to a cluster.
func (s *stage) bridged() (*paxosbridge.Bridge, *rowlock.Client) {
	s.Helper()
	table, err := rowlock.OpenTable(s.Pool(s.T), s.Dialect, nil)
	s.scene.OK(err)
	s.Cleanup(func() { _ = table.Close() })
	b, err := paxosbridge.New(s.Context(), table, memcluster.New(), &paxosbridge.Config{
		Every: -1, Logger: slog.New(slog.DiscardHandler),
	})
	s.scene.OK(err)
	s.Cleanup(func() { _ = b.Close() })
	c, err := rowlock.New(b, servertest.Config(func(cfg *rowlock.Config) { cfg.Identity = "web-1" }))
	s.scene.OK(err)
	s.Cleanup(func() { _ = c.Close() })
	s.scene.OK(s.scene.Take(c, "k").Unlock(s.Context())) // the row comes with the first lock
	s.scene.OK(b.MoveOut(s.Context(), "k", "hot"))
	return b, c
}

func (s *stage) moved() {
	_, c := s.bridged()
	s.scene.Take(c, "k")
}

func (s *stage) movedBack() {
	b, c := s.bridged()
	s.scene.OK(b.MoveBack(s.Context(), "k", "cold"))
	s.scene.Take(c, "k")
}

func (s *stage) later() {
	s.alive()
	const to = `UPDATE {rowlock_meta} SET value = ? WHERE name IN ('schema_version', 'compatible_from')`
	s.Exec(s.T, to, "99")
	s.Cleanup(func() { s.Exec(s.T, to, "3") })
}

// as has the tools be another user, who has some rights.
func (s *stage) as(rights func(user string)) {
	s.Helper()
	s.alive()
	user, seen := s.scene.User()
	rights(user)
	s.dsn = dsnOf(s.T, seen.Env)
}

func (s *stage) mayNothing() {
	s.as(func(string) {})
	s.process = "GRANT"
	if s.Driver == "mysql" { // which lets them connect to no database
		s.process = "Access denied"
	}
}

func (s *stage) mayRead() {
	s.as(func(user string) {
		for table := range servertest.Needed {
			s.Exec(s.T, `GRANT SELECT ON {`+table+`} TO `+user)
		}
	})
}

func (s *stage) readsOnly() {
	s.alive()
	s.dsn += "&default_transaction_read_only=on"
}

// replica has the tools ask a standby of which the primary is another server's.
func (s *stage) replica() {
	source, of, says := s.pair()
	e := s.Kind.At(s.T, source)
	s.bed = newBed(s.T, e)
	s.scene = &servertest.Scene{T: s.T, Env: e}
	s.alive()
	seen := *e
	seen.Source = of
	s.dsn = dsnOf(s.T, &seen)
	s.process = says
	s.until("ls", says)
}

// pair starts a server of the stage's kind and its replica, and returns how each is reached, and
// what tools call a replica of this kind.
func (s *stage) pair() (source, replica, says string) {
	if s.Driver == "mysql" {
		pair := standby.StartReplicated(s.T, s.Kind.Name)
		return pair.Source(), pair.ReplicaSource(), "as on a replica"
	}
	pair := standby.StartAsynchronous(s.T)
	return pair.Source, pair.StandbySource(), "standby"
}

func (s *stage) pooler() {
	s.Helper()
	testdb.PgBouncer.DSN(s.T) // skips
	e := s.Behind(s.T)
	s.bed, s.flags = newBed(s.T, e), []string{"--pooled"}
	s.scene = &servertest.Scene{T: s.T, Env: e}
}

func (s *stage) pooled() {
	s.pooler()
	s.alive()
}

func (s *stage) pooledAndLocked() {
	s.pooler()
	s.lockedByAnother()
}
