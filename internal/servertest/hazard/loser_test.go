package hazard

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// losses is how often a loser asks.
const losses = 300

// losing returns a function that asks once for a key that is held, with each strategy in turn,
// and is refused.
func losing(s *servertest.Scene) (lose func()) {
	s.Helper()
	s.Take(s.Client(servertest.WithTTL(time.Hour)), "held")
	var losers []*rowlock.Client
	for _, st := range servertest.Strategies {
		losers = append(losers, s.Client(servertest.WithStrategy(st)))
	}
	turn := 0
	return func() {
		s.Helper()
		s.WantHeld(losers[turn%len(losers)], "held")
		turn++
	}
}

// A loser leaves no trace: no version of a row, no lock in one, no byte in any log. A hundred
// processes that wait for one key are a hundred readers.
func TestALoserWritesNothing(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		lose := losing(s)
		before := trace(s)
		for range losses {
			lose()
		}
		if after := trace(s); after != before {
			s.Errorf("before %d losses:\n%s\nafter:\n%s", losses, before, after)
		}
	})
}

// trace is everything about the scene's tables that a write or a lock changes, and nothing that
// other tests change.
func trace(s *servertest.Scene) string {
	s.Helper()
	switch {
	case s.Is("postgres"): // a new version has another place, a locked one another xmax
		return text(s,
			`SELECT string_agg(t::text, ' ') FROM (SELECT ctid, xmin, xmax, key, token FROM {rowlock} ORDER BY key) AS t`) +
			text(s, `SELECT string_agg(t::text, ' ') FROM (SELECT ctid, xmin, xmax FROM {rowlock_floor} ORDER BY bucket) AS t`)
	case s.Is("mysql"): // which counts per table what it writes, and what it locks on reading
		name := s.Env.Dialect.Names().Prefix + `rowlock%`
		return text(
			s, `SELECT GROUP_CONCAT(object_name, ' ', count_insert, ' ', count_update, ' ', count_delete, '\n' ORDER BY object_name)
			FROM performance_schema.table_io_waits_summary_by_table WHERE object_name LIKE ?`, name) +
			text(s, `SELECT GROUP_CONCAT(object_name, ' ', count_write_allow_write, ' ', count_read_with_shared_locks, ' ', count_write_low_priority,'\n' ORDER BY object_name)
			FROM performance_schema.table_lock_waits_summary_by_table WHERE object_name LIKE ?`, name)
	case s.Is("sqlite"):
		var sum strings.Builder
		file, _, _ := strings.Cut(strings.TrimPrefix(s.Env.Source, "file:"), "?")
		for _, f := range []string{file, file + "-wal"} {
			bytes, _ := os.ReadFile(f)
			fmt.Fprintf(&sum, "%s %d bytes %x\n", f, len(bytes), sha256.Sum256(bytes))
		}
		return sum.String() + text(s, `PRAGMA data_version`)
	}
	return dump(s) // MariaDB tells its own counters only to the session: see below
}

func text(s *servertest.Scene, query string, args ...any) (v string) {
	s.Helper()
	if err := s.Env.DB.QueryRowContext(s.Context(), s.Env.SQL(query), args...).Scan(&v); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
	return v
}

// A session's counters show what its statements do.
func TestALosersSessionWritesNothing(t *testing.T) {
	for _, product := range []string{"mysql", "mariadb"} {
		servertest.On(t, product, func(s *servertest.Scene) {
			s.Take(s.Client(servertest.WithTTL(time.Hour)), "held")
			for _, st := range servertest.Strategies {
				p := s.Party(st)
				counters := func() (all string) {
					s.Helper()
					rows, err := p.Session.Conn().QueryContext(
						s.Context(), `SHOW SESSION STATUS WHERE Variable_name IN
						('Handler_update', 'Handler_delete', 'Handler_write', 'Handler_rollback')`)
					s.OK(err)
					defer rows.Close()
					for rows.Next() {
						var name, value string
						s.OK(rows.Scan(&name, &value))
						all += name + " " + value + "\n"
					}
					return all
				}
				if got := p.Acquire("held"); got.Granted || got.Err != nil {
					s.Fatalf("%+v", got)
				}
				before := counters()
				for range losses {
					p.Acquire("held")
				}
				if after := counters(); after != before {
					s.Errorf("%s: before:\n%s\nafter:\n%s", st, before, after)
				}
			}
		})
	}
}

// All clients share the server's log of writes. Other tests write now and then; losers ask all
// the time. If losers wrote, the log would never stand still while they ask.
func TestTheLogStandsStillWhileLosersAsk(t *testing.T) {
	position := map[string]string{
		"postgres": `SELECT pg_current_wal_insert_lsn()`,
		"mysql":    `SELECT variable_value FROM performance_schema.global_status WHERE variable_name = 'Innodb_os_log_written'`,
		"mariadb":  `SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Innodb_lsn_current'`,
	}
	servertest.EachServer(t, func(s *servertest.Scene) {
		lose := losing(s)
		// The shorter the moment has to be, the sooner one is found in which other tests write
		// nothing.
		for began, losers := time.Now(), 10; time.Since(began) < 3*time.Minute; losers = max(1, losers-1) {
			before := text(s, position[s.Env.Name])
			for range losers {
				lose()
			}
			if text(s, position[s.Env.Name]) == before {
				return
			}
		}
		s.Error("the log has not stood still for one loser in three minutes; " +
			"if other programs write to this server all the time, give the test its own")
	})
}

// Contention is not an error, and does not belong in the server's log.
func TestContentionLeavesNoLineInTheServersLog(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		file := os.Getenv("ROWLOCK_TEST_" + strings.ToUpper(s.Env.Name) + "_LOG")
		before, err := os.ReadFile(file)
		if err != nil {
			if os.Getenv("CI") != "" {
				s.Fatalf("the server's log: %v", err)
			}
			s.Skipf("SKIPPED, NOT TESTED: the server's log: %v", err)
		}
		end := time.Now().Add(400 * time.Millisecond)
		var wg sync.WaitGroup
		for i := range 4 {
			c := s.Client(servertest.WithStrategy(servertest.Strategies[i%2]),
				servertest.WithPoll(20*time.Millisecond))
			for worker := range 3 {
				wg.Go(func() {
					for n := 0; time.Now().Before(end); n++ {
						s.OK(s.Take(c, "hot").Unlock(s.Context()))
						if l, err := c.TryLock(s.Context(), fmt.Sprintf("one-shot %d", n+worker)); err == nil {
							s.OK(l.Unlock(s.Context()))
						}
					}
				})
			}
		}
		wg.Wait()
		l, tx := s.Fenced(s.Client(), "fenced", true, nil)
		s.WantHeld(s.Client(), "fenced")
		s.OK(tx.Rollback())
		s.OK(l.Unlock(s.Context()))
		after, err := os.ReadFile(file)
		s.OK(err)
		for _, line := range strings.Split(string(after[len(before):]), "\n") {
			if strings.Contains(line, s.Env.Dialect.Names().Prefix) {
				s.Errorf("the server's log: %s", line)
			}
		}
	})
}
