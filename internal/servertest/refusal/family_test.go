package refusal

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
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

// A client that locks needs no right on the tables of other sets. What it cannot do ends in one
// error, at once and with nothing written.
func TestAUserWithoutTheFamilysTablesLocks(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		table := s.Ledger()
		s.Exec(s.Env.DB, `GRANT SELECT, UPDATE ON `+table+` TO `+name)
		seen.T = s.T
		const all = "SELECT, INSERT, UPDATE, DELETE"
		_, err := latch.New(seen.Env.Pool(s), s.Env.Dialect, nil)
		wantGrant(s, "latch.New", err, all, "rowlock_latch")
		wantGrant(s, "latch.New", err, all, "rowlock_party")
		seen.Cycle(seen.Env.Pool(s), table)
	})
}

// Readers leave rows that the key's next owner has to end. A client that could not is refused
// before it locks anything.
func TestAUserWithoutTheTablesOfReadersIsRefusedWhereTheyAre(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		for _, table := range []string{"rowlock_member", "rowlock_limit"} {
			s.Exec(s.Env.DB, `REVOKE `+strings.Join(servertest.Needed[table], ", ")+` ON {`+table+`} FROM `+name)
		}
		_, err := rowlock.Open(seen.Env.Pool(s), s.Env.Dialect, nil)
		wantGrant(s, "Open", err, "SELECT, INSERT, UPDATE, DELETE", "rowlock_member")
		wantGrant(s, "Open", err, "SELECT, INSERT, UPDATE", "rowlock_limit")
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

// Without its primary key a table of once, of latch or of forupdate takes two rows of one key. They
// do work twice, count a party twice or let two hold the key.
func TestTablesOfTheFamilyWithoutTheirKeyAreRefused(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		for table, open := range map[string]func() error{
			"rowlock_once":  func() error { _, err := once.New(s.Env.Pool(s), s.Env.Dialect, nil); return err },
			"rowlock_party": func() error { _, err := latch.New(s.Env.Pool(s), s.Env.Dialect, nil); return err },
			"rowlock_hold":  func() error { _, err := forupdate.New(s.Env.Pool(s), s.Env.Dialect); return err },
		} {
			drop := `PRIMARY KEY`
			if s.Is("postgres") {
				drop = `CONSTRAINT ` + s.Env.Dialect.Names().Prefix + table + `_pkey`
			}
			s.Exec(s.Env.DB, `ALTER TABLE {`+table+`} DROP `+drop)
			if err := open(); !errors.Is(err, rowlock.ErrNoSchema) || !strings.Contains(err.Error(), s.Env.Table(table)) {
				s.Errorf("%s: %v", table, err)
			}
		}
	})
}
