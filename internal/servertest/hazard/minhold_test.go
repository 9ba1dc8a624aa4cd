package hazard

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMinHoldInTheDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		c, err := rowlock.Open(e.DB, e.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l := clienttest.Take(t, c, "k", rowlock.MinHold(time.Hour))
		tx, err := e.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		clienttest.WantIs(t, "UnlockTx", l.UnlockTx(t.Context(), tx), rowlock.ErrConfig)
		_ = tx.Rollback()
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		var held *rowlock.HeldError
		if _, err := c.TryLock(t.Context(), "k"); !errors.As(err, &held) ||
			held.Remaining < 59*time.Minute || held.Remaining > time.Hour {
			t.Errorf("TryLock after unlock: %v", err)
		}
		e.Expire(t, "k") // as an operator may
		clienttest.Take(t, c, "k")
	})
}

// The statements that operators find in the documentation, on the tables of this test.
func TestAnOperatorFreesAKeyAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Free a key")
	servertest.Each(t, func(s *servertest.Scene) {
		name := map[bool]string{true: "MySQL and MariaDB"}[s.Is("mysql", "mariadb")]
		if name == "" {
			name = map[bool]string{true: "PostgreSQL", false: "SQLite"}[s.Is("postgres")]
		}
		_, block, _ := strings.Cut(section, "On "+name+":\n\n```sql\n")
		statement, _, found := strings.Cut(block, "```")
		if !found {
			s.Fatalf("no statement for %s", name)
		}
		l := s.Take(s.Client(), "nightly", rowlock.MinHold(time.Hour))
		s.OK(l.Unlock(s.Context()))
		s.Env.Exec(s, strings.ReplaceAll(statement, "UPDATE rowlock", "UPDATE {rowlock}"))
		next := s.Take(s.Client(), "nightly")
		if next.Token() != l.Token()+1 {
			s.Errorf("token %d after %d", next.Token(), l.Token())
		}
		s.OK(next.Unlock(s.Context()))
	})
}

// The row is free for every other process, at once.
func TestMinHoldUndoneInTheDatabase(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		c, other := s.Client(), s.Client()
		l := s.Take(c, "k", rowlock.MinHold(time.Hour))
		s.OK(l.Unlock(s.Context()))
		s.WantHeld(other, "k")
		s.OK(l.UnlockNow(s.Context()))
		next := s.Take(other, "k")
		s.WantErr(l.UnlockNow(s.Context()), rowlock.ErrUnlocked)
		s.WantHeld(c, "k")
		s.OK(next.Unlock(s.Context()))
	})
}
