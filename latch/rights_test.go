package latch_test

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
)

// A user of latches needs no rights on the locks, and is told all that it lacks at once.
func TestNewNamesTheRightsThatLack(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		for _, table := range []string{"rowlock_floor", "rowlock_meta"} {
			s.Exec(s.Env.DB, `GRANT SELECT ON {`+table+`} TO `+name)
		}
		s.Exec(s.Env.DB, `GRANT SELECT ON {rowlock_latch} TO `+name)
		_, err := latch.New(seen.Env.Pool(s), s.Env.Dialect, nil)
		s.WantErr(err, lease.ErrPrivilege)
		for _, grant := range []string{
			"GRANT INSERT, UPDATE, DELETE ON " + s.Env.Named(s, "rowlock_latch"),
			"GRANT SELECT, INSERT, UPDATE, DELETE ON " + s.Env.Named(s, "rowlock_party"),
		} {
			if err != nil && !strings.Contains(err.Error(), grant) {
				s.Errorf("%q does not say %q", err, grant)
			}
		}
		for _, table := range []string{"rowlock_latch", "rowlock_party"} {
			s.Exec(s.Env.DB, `GRANT SELECT, INSERT, UPDATE, DELETE ON {`+table+`} TO `+name)
		}
		r := &rig{seen.Env}
		l := opened(s.T, r.process(s.T), "l", 1)
		ok(s.T, l.CountDown(s.Context(), "x"))
		ok(s.T, l.Await(soon(s.T)))
		b := barrier(s.T, r.process(s.T), 1)
		ok(s.T, b.Enter(soon(s.T), "x"))
		ok(s.T, b.Leave(soon(s.T), "x"))
		r.Env = s.Env
		r.expire(s.T)
		r.Env = seen.Env
		if n, err := r.process(s.T).Sweep(s.Context(), 0); err != nil || n != 5 {
			s.Errorf("%d rows removed; %v", n, err)
		}
	})
}
