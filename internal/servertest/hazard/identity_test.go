package hazard

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

var longNote = "tab\t" + strings.Repeat("☕", 83) + "xx"

func withIdentity(identity string, fair bool) func(*rowlock.Config) {
	return func(c *rowlock.Config) { c.Identity, c.Fair = identity, fair }
}

// The longest identity and the longest note fit, together and whatever is in them, in a lease and
// in a ticket.
func TestAKeyShowsTheProgramAndTheNoteOfItsHolder(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		names := []string{
			`web-1 ' \ " % é ` + strings.Repeat("€", 37), `web-2 ' \ " % é ` + strings.Repeat("€", 37),
		}
		note := rowlock.Note(longNote)
		for _, fair := range []bool{false, true} {
			s.Part(fmt.Sprintf("fair %t", fair), func(s *servertest.Scene) {
				key := fmt.Sprint("key ", fair)
				clients := []*rowlock.Client{
					s.Client(withIdentity(names[0], fair)), s.Client(withIdentity(names[1], fair)),
				}
				l := s.Take(clients[0], key, note)
				wantShown(s, clients[1], key, names[0])
				taken := make(chan *rowlock.Lock)
				go func() {
					next, _ := clients[1].Lock(s.Context(), key, note)
					taken <- next
				}()
				s.Eventually("the next to wait", func() bool { return !fair || s.Number(`SELECT COUNT(*) FROM {rowlock_queue}`) > 0 })
				s.OK(l.Unlock(s.Context()))
				next := <-taken
				wantShown(s, clients[0], key, names[1])
				s.OK(next.Unlock(s.Context()))
			})
		}
	})
}

// wantShown fails the test unless a loser, Inspect and SQL show the identity.
func wantShown(s *servertest.Scene, loser *rowlock.Client, key, identity string) {
	s.Helper()
	if held := s.WantHeld(loser, key); held.Identity != identity || held.Note != longNote {
		s.Errorf("the loser of %q is told %#v, want %q", key, held, identity)
	}
	var raw []byte
	query := s.Env.SQL(`SELECT note FROM {rowlock} WHERE {key} = ?`)
	s.OK(s.Env.DB.QueryRowContext(s.Context(), query, []byte(key)).Scan(&raw))
	if string(raw) != identity+"\t"+longNote || len(raw) != lease.MaxStoredNote {
		s.Errorf("the row has %q", raw)
	}
	store, err := rowlock.OpenTable(s.Env.DB, s.Env.Dialect, servertest.Config())
	s.OK(err)
	defer store.Close()
	rows, err := store.Inspect(s.Context(), lease.Filter{Keys: []string{key}})
	if err != nil || len(rows) != 1 || rows[0].Identity() != identity {
		s.Errorf("Inspect shows %+v, %v", rows, err)
	}
}

// The owner of a lease is random, whatever its program is called.
func TestProgramsWithOneNameExcludeEachOther(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		one, two := s.Client(withIdentity("same", false)), s.Client(withIdentity("same", false))
		l := s.Take(one, "k", rowlock.Note("same"))
		s.WantHeld(two, "k")
		s.WantHeld(one, "k")
		s.OK(l.Unlock(s.Context()))
		next := s.Take(two, "k", rowlock.Note("same"))
		s.Above(next, l)
		s.WantErr(l.Unlock(s.Context()), rowlock.ErrUnlocked)
		s.WantHeld(one, "k")
	})
}

// uniqueName is an identity that no other test of this machine has.
func uniqueName(what string) string { return fmt.Sprintf(`it's \%s/%d`, what, os.Getpid()) }

// named counts the sessions of the server that have a name.
func named(s *servertest.Scene, identity string) int {
	return int(s.Number(`SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = ?`,
		"rowlock: "+identity))
}

func TestPostgresShowsTheProgramOfEachSessionOfRowlock(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		name := uniqueName("direct")
		pool := s.Env.Pool(s)
		pool.SetMaxOpenConns(10)
		c := s.ClientOn(pool, withIdentity(name, false))
		if n := named(s, name); n != 3 {
			s.Errorf("%d sessions are called %s, want the 3 pinned connections", n, name)
		}
		l := s.Take(c, "k")
		done := make(chan error, 1)
		go func() {
			next, err := c.Lock(s.Context(), "k")
			if err == nil {
				err = next.Unlock(s.Context())
			}
			done <- err
		}()
		s.Eventually("the listener to have the name", func() bool { return named(s, name) == 4 })
		s.OK(l.Unlock(s.Context()))
		s.OK(<-done)
		wantNamesOf(s, pool, "")
		s.OK(c.Close())
		wantNamesOf(s, pool, "")
		s.Eventually("the sessions to end", func() bool { return named(s, name) == 0 })
	})
}

// wantNamesOf fails the test unless every connection that the application gets has the name.
func wantNamesOf(s *servertest.Scene, pool *sql.DB, want string) {
	s.Helper()
	for range pool.Stats().MaxOpenConnections - pool.Stats().InUse {
		conn, err := pool.Conn(s.Context())
		s.OK(err)
		defer conn.Close()
		var name string
		s.OK(conn.QueryRowContext(s.Context(), `SELECT current_setting('application_name')`).Scan(&name))
		if name != want {
			s.Errorf("the application has a session called %q, want %q", name, want)
		}
	}
}

func TestANameThatTheApplicationChoseStays(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		chosen := fmt.Sprint("orders-", os.Getpid())
		name := uniqueName("chosen")
		s.With("application_name=" + chosen).Client(withIdentity(name, false))
		theirs := s.Number(`SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = ?`, chosen)
		if n := named(s, name); n != 0 || theirs < 3 {
			s.Errorf("%d sessions are called %s and %d %s, want 0 and 3 or more", n, name, theirs, chosen)
		}
	})
}

// PostgreSQL keeps 63 bytes, and each version replaces other bytes than ASCII in its own way.
func TestALongNameOfASessionIsCut(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		prefix := fmt.Sprint("é", os.Getpid(), "/")
		s.Client(withIdentity(prefix+strings.Repeat("x", 100), false))
		want := "rowlock: ?" + prefix[len("é"):]
		want += strings.Repeat("x", 63-len(want))
		if n := s.Number(`SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = ?`, want); n != 3 {
			s.Errorf("%d sessions are called %s, want 3", n, want)
		}
	})
}

// Behind a pooler in transaction mode the next statement of a session may be another client's.
func TestSessionsBehindPgBouncerKeepTheirNames(t *testing.T) {
	testdb.PgBouncer.DSN(t) // skips, before there are tables
	servertest.On(t, "postgres", func(direct *servertest.Scene) {
		name := uniqueName("behind")
		s := &servertest.Scene{
			T: direct.T, Env: direct.Env.Behind(direct, postgres.Listen(direct.Env.Source)),
		}
		c := s.Client(withIdentity(name, false))
		l := s.Take(c, "k")
		done := make(chan error, 1)
		go func() {
			next, err := c.Lock(s.Context(), "k")
			if err == nil {
				err = next.Unlock(s.Context())
			}
			done <- err
		}()
		direct.Eventually("the listener, which is direct, to have the name", func() bool { return named(direct, name) == 1 })
		s.OK(l.Unlock(s.Context()))
		s.OK(<-done)
		if n := named(direct, name); n != 1 {
			s.Errorf("%d sessions have the name", n)
		}
	})
}

// MySQL takes attributes when a session connects. MariaDB too, and keeps them only if its
// performance_schema is on.
func TestMySQLShowsTheProgramOfEachSessionOfThePool(t *testing.T) {
	for _, kind := range []string{"mysql", "mariadb"} {
		servertest.On(t, kind, func(s *servertest.Scene) {
			name := uniqueName(kind)
			source, err := mysql.Identify(s.With("connectionAttributes=team:red").Env.Source, name)
			s.OK(err)
			env := *s.Env
			env.Source = source
			(&servertest.Scene{T: s.T, Env: &env}).Client(withIdentity(name, false))
			want := int64(3)
			if s.Number(`SELECT @@performance_schema`) == 0 {
				s.Log("performance_schema is off: the server keeps no attributes")
				want = 0
			}
			for attribute, value := range map[string]string{"program_name": name, "team": "red"} {
				if n := s.Number(`SELECT COUNT(*) FROM performance_schema.session_connect_attrs
					WHERE ATTR_NAME = ? AND ATTR_VALUE = ?`, attribute, value); n < want || want == 0 && n > 0 {
					s.Errorf("%d sessions have %s %s, want %d", n, attribute, value, want)
				}
			}
		})
	}
}
