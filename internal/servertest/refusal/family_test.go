package refusal

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/semaphore"
)

// wantGrant wants one clear error that names a table and the statement that cures it.
func wantGrant(s *servertest.Scene, what string, err error, rights, table string) {
	s.Helper()
	grant := "GRANT " + rights + " ON " + s.Env.Named(s, table) + " TO the user"
	switch {
	case !errors.Is(err, rowlock.ErrPrivilege) || errors.Is(err, rowlock.ErrUnknown):
		s.Errorf("%s: got %v, want %v", what, err, rowlock.ErrPrivilege)
	case strings.Count(err.Error(), grant) != 1 || strings.Contains(err.Error(), "\n"):
		s.Errorf("%s: %q does not say %q once, in one line", what, err, grant)
	}
}

// A user that locks exclusively needs no right on the tables of the rest. What it cannot do ends in
// one error, at once and with nothing written.
func TestAUserWithoutTheFamilysTablesLocksExclusively(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		table := s.Ledger()
		s.Exec(s.Env.DB, `GRANT SELECT, UPDATE ON `+table+` TO `+name)
		seen.T = s.T
		db := seen.Env.Pool(s)
		c := seen.ClientOn(db)
		ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
		defer cancel()
		const all = "SELECT, INSERT, UPDATE, DELETE"
		for what, f := range map[string]func() error{
			"RLock":    func() error { _, err := c.RLock(ctx, "shared"); return err },
			"TryRLock": func() error { _, err := c.TryRLock(ctx, "shared"); return err },
			"RLockAll": func() error { _, err := c.RLockAll(ctx, []string{"a", "b"}); return err },
		} {
			wantGrant(s, what, f(), all, "rowlock_member")
		}
		permits, err := semaphore.New(c, "s", 3)
		s.OK(err)
		_, err = permits.Acquire(ctx, 1)
		wantGrant(s, "Acquire", err, "SELECT, INSERT, UPDATE", "rowlock_limit")
		_, err = permits.TryAcquire(ctx, 1)
		wantGrant(s, "TryAcquire", err, "SELECT, INSERT, UPDATE", "rowlock_limit")
		wantGrant(s, "Resize", permits.Resize(ctx, 2), "SELECT, INSERT, UPDATE", "rowlock_limit")
		_, err = latch.New(db, s.Env.Dialect, nil)
		wantGrant(s, "latch.New", err, all, "rowlock_latch")
		wantGrant(s, "latch.New", err, all, "rowlock_party")
		if n := s.Rows(); n != 0 {
			s.Errorf("%d rows after nothing but refusals", n)
		}
		if n := c.Stats().OrphansOpen; n != 0 {
			s.Errorf("%d refused requests are left for the orphan cleaner", n)
		}
		seen.Cycle(db, table)
	})
}

// Rights that are taken away while the client is open end its calls with the same errors.
func TestRightsOnTheFamilysTablesThatAreTakenAway(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		const all = "SELECT, INSERT, UPDATE, DELETE"
		for _, table := range []string{"rowlock_latch", "rowlock_party", "rowlock_limit"} {
			s.Exec(s.Env.DB, `GRANT `+all+` ON {`+table+`} TO `+name)
		}
		seen.T = s.T
		latches, err := latch.New(seen.Env.Pool(s), s.Env.Dialect, nil)
		s.OK(err)
		defer latches.Close()
		s.Exec(s.Env.DB, `REVOKE `+all+` ON {rowlock_party} FROM `+name)
		l, err := latches.Open(s.Context(), "l", 2)
		if err == nil {
			err = l.CountDown(s.Context(), "x")
		}
		if !errors.Is(err, lease.ErrPrivilege) || !strings.Contains(err.Error(), "GRANT "+all) ||
			!strings.Contains(err.Error(), s.Env.Table("rowlock_party")) {
			s.Errorf("a latch without rowlock_party: %v", err)
		}
	})
}

// Keys that other users share are held for a user that cannot see who shares them, and free for it
// once they have unlocked.
func TestAUserThatSeesNoMembersWaitsForThem(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		seen.T = s.T
		c := seen.Client()
		readers := s.Client()
		one, err := readers.RLock(s.Context(), "k")
		s.OK(err)
		seen.WantHeld(c, "k")
		got := make(chan error, 1)
		go func() {
			l, err := c.Lock(s.Context(), "k")
			if err == nil {
				err = l.Unlock(context.Background())
			}
			got <- err
		}()
		select {
		case err := <-got:
			s.Errorf("a writer did not wait for a reader: %v", err)
		case <-time.After(time.Second):
			s.OK(one.Unlock(s.Context()))
			s.OK(<-got)
		}
	})
}
