package tokenfence_test

import (
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// The lock is in one database and the data in another. A holder is stopped past its lease, and
// writes after the next holder has.
func TestAStalledHolderCannotWriteElsewhere(t *testing.T) {
	each(t, func(s *site) {
		locks := testdb.Kinds[0].Open(s.T)
		stalled := s.hold(locks)
		s.ok(s.pass(stalled.Token()))
		locks.Expire(s.T, "q3")
		next := s.hold(locks)
		s.ok(s.pass(stalled.Token())) // the next has not written, so that this is before it
		s.ok(s.pass(next.Token()))
		s.wantIs(s.pass(stalled.Token()), rowlock.ErrFenced, "another holder")
		s.wantToken(next.Token())
	})
}

// hold locks a key as a process of its own does.
func (s *site) hold(e *testdb.Env) *rowlock.Lock {
	s.Helper()
	c, err := rowlock.Open(e.DB, e.Dialect, nil)
	s.ok(err)
	s.Cleanup(func() { _ = c.Close() })
	l, err := c.Lock(s.Context(), "q3", rowlock.NoRenew())
	s.ok(err)
	return l
}
