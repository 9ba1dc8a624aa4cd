package hazard

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// eachStrategy runs f on every server with both strategies.
func eachStrategy(t *testing.T, f func(s *servertest.Scene, st rowlock.Strategy)) {
	t.Helper()
	servertest.EachServer(t, func(s *servertest.Scene) {
		for _, st := range servertest.Strategies {
			s.Part(st.String(), func(s *servertest.Scene) { f(s, st) })
		}
	})
}

// A statement may compute its token, wait for another's commit, and be granted after tokens that
// were granted meanwhile. Its own token must be above them: it is computed on the row as it is
// when the statement has it, or not used.
func TestAStalledStatementIsNotGrantedAnOldToken(t *testing.T) {
	eachStrategy(t, func(s *servertest.Scene, st rowlock.Strategy) {
		fast, slow := s.Party(st), s.Party(st)
		for row, key := range map[string]string{
			"absent": "absent " + st.String(), "free": "free " + st.String(),
		} {
			if row == "free" {
				fast.Release(fast.Take(key))
			}
			fast.Exec(`BEGIN`)
			last := fast.Take(key)
			var got servertest.Acquired
			done, _ := slow.Stalls(func() { got = slow.Acquire(key) })
			for range 3 {
				fast.Release(last)
				last = fast.Take(key)
			}
			fast.Release(last)
			fast.Exec(`COMMIT`)
			<-done
			for !got.Granted { // it tries again, as the store does
				if got.Err != nil && sqlstore.Judge(s.Env.Dialect, got.Err).Class != sqlstore.Conflict {
					s.Fatalf("%q: %v", key, got.Err)
				}
				got = slow.Acquire(key)
			}
			if got.Token <= last.Token {
				s.Errorf("%q: token %d was granted after %d", key, got.Token, last.Token)
			}
		}
	})
}

// While a statement that has read the floor waits, the reaper cannot raise it.
func TestTheReaperCannotComeBetweenAFloorAndItsRow(t *testing.T) {
	eachStrategy(t, func(s *servertest.Scene, st rowlock.Strategy) {
		other, slow, reaper, key := s.Party(st), s.Party(st), s.Party(st), st.String()
		other.Exec(`BEGIN`)
		other.Exec(`INSERT INTO {rowlock} ({key}, token, acquired_at, expires_at) VALUES (?, 1, {now}, {now})`, []byte(key))
		var got servertest.Acquired
		done, stalled := slow.Stalls(func() { got = slow.Acquire(key) })
		if !stalled {
			s.Fatal("the statement did not wait")
		}
		reaper.Exec(`BEGIN`)
		var floor lease.Token
		lock := s.Env.SQL(`SELECT floor FROM {rowlock_floor} WHERE bucket = ? FOR UPDATE NOWAIT`)
		err := reaper.Session.Conn().QueryRowContext(s.Context(), lock, lease.Bucket(key)).Scan(&floor)
		if sqlstore.Judge(s.Env.Dialect, err).Class != sqlstore.Conflict {
			s.Errorf("the floor can be locked while a row is made that counts from it: %v", err)
		}
		reaper.Exec(`ROLLBACK`)
		other.Exec(`ROLLBACK`)
		<-done
		if !got.Granted || got.Token != floor+1 {
			s.Errorf("%+v, want token %d", got, floor+1)
		}
	})
}

// The usual form takes the token from a sequence, which hands out numbers in another order than
// rows are locked. The same interleaving shows it.
func TestTokensOfASequenceRegress(t *testing.T) {
	upserts := map[string]string{
		"postgres": `INSERT INTO TABLE VALUES (1, nextval('SEQ')) ON CONFLICT (k) DO UPDATE SET token = EXCLUDED.token`,
		"mariadb":  `INSERT INTO TABLE VALUES (1, NEXTVAL(SEQ)) ON DUPLICATE KEY UPDATE token = VALUES(token)`,
	}
	for product, upsert := range upserts {
		servertest.On(t, product, func(s *servertest.Scene) {
			table, seq := s.Env.Dialect.Names().Prefix+"naive", s.Env.Dialect.Names().Prefix+"seq"
			upsert := strings.NewReplacer("TABLE", table, "SEQ", seq).Replace(upsert)
			s.Exec(s.Env.DB, `CREATE TABLE `+table+` (k INT PRIMARY KEY, token BIGINT NOT NULL)`)
			s.Exec(s.Env.DB, `CREATE SEQUENCE `+seq)
			s.Cleanup(func() { s.Env.Exec(s, `DROP TABLE `+table); s.Env.Exec(s, `DROP SEQUENCE `+seq) })

			fast, slow := s.Party(rowlock.Update), s.Party(rowlock.Update)
			fast.Exec(`BEGIN`)
			fast.Exec(upsert)
			done, stalled := slow.Stalls(func() { slow.Exec(upsert) })
			if !stalled {
				s.Fatal("the statement did not wait")
			}
			fast.Exec(upsert)
			last := fast.Number(`SELECT token FROM ` + table)
			fast.Exec(`COMMIT`)
			<-done
			if got := slow.Number(`SELECT token FROM ` + table); got >= last {
				s.Errorf("token %d after %d: the interleaving finds nothing wrong with a sequence", got, last)
			}
		})
	}
}

// A statement that waits for a row reads the clock afterwards. Otherwise its wait would shorten
// the lease. On MySQL the clock stands still from the statement's begin, which is still not
// before the holder began to count.
func TestALeaseIsNotCutShortByTheWaitForItsRow(t *testing.T) {
	const wait = 700 * time.Millisecond
	servertest.EachServer(t, func(s *servertest.Scene) {
		other, slow := s.Party(rowlock.Update), s.Party(rowlock.Update)
		other.Release(other.Take("k"))
		other.Exec(`BEGIN`)
		other.Exec(`UPDATE {rowlock} SET note = 'busy' WHERE {key} = ?`, []byte("k"))
		sent := time.Now()
		var got servertest.Acquired
		done, stalled := slow.Stalls(func() { got = slow.Acquire("k") })
		if stalled == s.Is("mariadb") {
			s.Fatalf("waited: %t; pinned connections tell MariaDB not to wait", stalled)
		}
		if stalled {
			s.Elapse(wait - time.Since(sent))
		}
		freed := time.Now()
		other.Exec(`COMMIT`)
		<-done
		if !stalled {
			if !errors.Is(got.Err, sqlstore.ErrRowLocked) && !errors.Is(got.Err, sqlstore.ErrRowShape) {
				s.Errorf("%+v, want an error that says that the row is locked", got)
			}
			return
		}
		left := remaining(s, "k")
		least := time.Minute - time.Since(freed)
		if s.Is("mysql") {
			least = time.Minute - time.Since(sent)
		}
		if !got.Granted || left < least {
			s.Errorf("granted: %t, for another %s of a minute after a wait of %s", got.Granted, left, wait)
		}
	})
}

// remaining is the rest of a key's lease, by the database's clock.
func remaining(s *servertest.Scene, key string) time.Duration {
	s.Helper()
	records, err := store(s).Inspect(s.Context(), lease.Filter{Keys: []string{key}})
	s.OK(err)
	if len(records) != 1 {
		s.Fatalf("%q has %d rows", key, len(records))
	}
	return records[0].Remaining
}

// Waiting for a lock is not holding it: the lease begins when the key is granted.
func TestALeaseIsWholeAfterALongWait(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		const wait = 3 * time.Second
		c := s.Client(servertest.WithTTL(time.Minute))
		first := s.Take(c, "k")
		got := make(chan *rowlock.Lock)
		go func() { got <- s.Take(s.Client(servertest.WithTTL(time.Minute)), "k") }()
		s.Elapse(wait)
		released := time.Now()
		s.OK(first.Unlock(s.Context()))
		l := <-got
		// What a busy machine took since the release is gone from the lease, and no more.
		if left, since := remaining(s, "k"), time.Since(released); left < time.Minute-since-wait/2 {
			s.Errorf("%s of a minute are left %s after the release, which came after %s", left, since, wait)
		}
		since := time.Since(released)
		if left := time.Until(l.Deadline()); left < time.Minute-6*time.Second-since-wait/2 {
			s.Errorf("it is trusted for %s, %s after the release, which came after %s", left, since, wait)
		}
	})
}
