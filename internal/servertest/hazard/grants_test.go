package hazard

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// crowd is 64 goroutines in four processes.
func crowd(s *servertest.Scene, st rowlock.Strategy) (clients []*rowlock.Client) {
	s.Helper()
	for range 4 {
		clients = append(clients, s.Client(servertest.WithStrategy(st)))
	}
	return clients
}

// The first callers of a key find no row, all at the same time.
func TestAFreshKeyIsGrantedExactlyOnce(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		keys := servertest.FromEnvironment("ROWLOCK_HAZARD_KEYS", 8)
		for _, st := range servertest.Strategies {
			clients := crowd(s, st)
			for i := range keys {
				key := st.String() + servertest.Numbered(i)
				grantedOnce(s, clients, key, s.Floor(key)+1)
			}
		}
	})
}

func grantedOnce(s *servertest.Scene, clients []*rowlock.Client, key string, want lease.Token) {
	s.Helper()
	var mu sync.Mutex
	var tokens []lease.Token
	var held []*rowlock.Lock
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			<-start
			l, err := clients[i%len(clients)].TryLock(s.Context(), key)
			if err != nil {
				if !errors.Is(err, rowlock.ErrHeld) {
					s.Errorf("%q: %v", key, err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			tokens, held = append(tokens, l.Token()), append(held, l)
		})
	}
	close(start)
	wg.Wait()
	runtime.KeepAlive(held) // a lock that was forgotten would be released and granted again
	if len(tokens) != 1 || tokens[0] != want {
		s.Errorf("%q: granted tokens %v, want %d alone", key, tokens, want)
	}
}

// Past the largest number that is exact everywhere, Postgres and MySQL would fail in the middle,
// and SQLite go on in floating point.
func TestTokensEndInAnErrorAndNotInANumber(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		for _, st := range servertest.Strategies {
			c := s.Client(servertest.WithStrategy(st))
			key := "old " + st.String()
			s.OK(s.Take(c, key).Unlock(s.Context()))
			s.Env.SetToken(s, key, lease.MaxToken-2)
			last := s.Take(c, key)
			if last.Token() != lease.MaxToken-1 {
				s.Errorf("token %d, want %d", last.Token(), lease.MaxToken-1)
			}
			s.OK(last.Unlock(s.Context()))
			for _, token := range []lease.Token{lease.MaxToken - 1, lease.MaxToken, 1<<63 - 1} {
				s.Env.SetToken(s, key, token)
				exhausted(s, c, key)
			}
			s.Env.Expire(s, key)
			exhausted(s, c, key)

			// Its row stays for the operator to see. If it were reaped, it would raise the floor
			// to there, and block all keys of the bucket.
			sweeper := store(s) // Open's rehearsal raises the floor of any bucket
			floor := s.Floor(key)
			_, err := sweeper.Sweep(s.Context(), lease.SweepOptions{})
			s.OK(err)
			exhausted(s, c, key)
			if after := s.Floor(key); after != floor {
				s.Errorf("the floor went from %d to %d", floor, after)
			}
			// by hand: no sweep does it
			s.Exec(s.Env.DB, `UPDATE {rowlock_floor} SET floor = ?`, lease.MaxToken-1)
			if l, err := c.TryLock(s.Context(), "newer"); err == nil {
				s.Errorf("granted with token %d over floors that have run out", l.Token())
			}
			s.Exec(s.Env.DB, `UPDATE {rowlock_floor} SET floor = 0`)
		}
	})
}

func exhausted(s *servertest.Scene, c *rowlock.Client, key string) {
	s.Helper()
	l, err := c.TryLock(s.Context(), key)
	if err == nil {
		s.Errorf("%q was granted with token %d", key, l.Token())
		return
	}
	s.WantErr(err, rowlock.ErrTokenExhausted)
}

// A renewal may arrive late: after the lease expired, the row was taken or removed. It must leave
// everything as it is.
func TestALateRenewalNeverRevivesInsertsOrSteals(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		late, rival := s.Client(servertest.WithTTL(1500*time.Millisecond),
			func(c *rowlock.Config) { c.RenewEvery = 150 * time.Millisecond }), s.Client()
		for name, happen := range map[string]func(key string) *rowlock.Lock{
			"expired": func(key string) *rowlock.Lock { s.Env.Expire(s, key); return nil },
			"taken":   func(key string) *rowlock.Lock { s.Env.Expire(s, key); return s.Take(rival, key) },
			"deleted": func(key string) *rowlock.Lock {
				s.Exec(s.Env.DB, `DELETE FROM {rowlock} WHERE {key} = ?`, []byte(key))
				return nil
			},
			"deleted and made anew": func(key string) *rowlock.Lock {
				s.Exec(s.Env.DB, `DELETE FROM {rowlock} WHERE {key} = ?`, []byte(key))
				return s.Take(rival, key)
			},
			"swept": func(key string) *rowlock.Lock {
				s.Env.Expire(s, key)
				_, err := store(s).Sweep(s.Context(), lease.SweepOptions{})
				s.OK(err)
				return nil
			},
			"truncated": func(string) *rowlock.Lock { s.Exec(s.Env.DB, truncate(s)); return nil },
		} {
			s.Part(name, func(s *servertest.Scene) {
				l := s.Take(late, name)
				next := happen(name)
				before := dump(s)
				<-l.Context().Done() // the watchdog's next renewal finds out
				s.WantErr(context.Cause(l.Context()), rowlock.ErrLost)
				if after := dump(s); after != before {
					s.Errorf("before: %s\nafter: %s", before, after)
				}
				s.WantErr(l.Unlock(s.Context()), rowlock.ErrLost)
				if after := dump(s); name != "expired" && after != before { // that row is still its own
					s.Errorf("before: %s\nafter Unlock: %s", before, after)
				}
				if next != nil {
					tx := s.Begin(s.Env.DB, nil)
					s.OK(next.Fence(s.Context(), tx))
					s.OK(tx.Commit())
					s.OK(next.Unlock(s.Context()))
				}
			})
		}
	})
}

func truncate(s *servertest.Scene) string {
	if s.Is("sqlite") {
		return `DELETE FROM {rowlock}`
	}
	return `TRUNCATE TABLE {rowlock}`
}

// dump is every row but rowlock's own, in full.
func dump(s *servertest.Scene) string {
	s.Helper()
	rows, err := s.Env.DB.QueryContext(s.Context(),
		s.Env.SQL(`SELECT {key}, owner, token, expires_at FROM {rowlock} WHERE {key} > ? ORDER BY {key}`),
		[]byte(lease.Reserved+"\xff"))
	s.OK(err)
	defer rows.Close()
	var all strings.Builder
	for rows.Next() {
		var v [4]sql.RawBytes
		s.OK(rows.Scan(&v[0], &v[1], &v[2], &v[3]))
		for _, b := range v {
			all.WriteString(string(b) + "|")
		}
		all.WriteByte('\n')
	}
	s.OK(rows.Err())
	return all.String()
}

// Under REPEATABLE READ, InnoDB locks the gap in which a row is missing, for any number of
// readers. Two of them that then insert wait for each other.
func TestTheNaiveSelectForUpdateDeadlocks(t *testing.T) {
	for _, product := range []string{"mysql", "mariadb"} {
		servertest.On(t, product, func(s *servertest.Scene) {
			table := s.Env.Dialect.Names().Prefix + "naive"
			s.Exec(s.Env.DB,
				`CREATE TABLE `+table+` (k VARCHAR(50) PRIMARY KEY, token BIGINT) ENGINE = InnoDB`)
			s.Cleanup(func() { s.Env.Exec(s, `DROP TABLE `+table) })
			one, two := s.Party(rowlock.Update), s.Party(rowlock.Update)
			for _, p := range []*servertest.Party{one, two} {
				p.Exec(`SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ`)
				p.Exec(`BEGIN`)
				p.Exec(`SELECT * FROM ` + table + ` WHERE k = 'absent' FOR UPDATE`)
			}
			insert := `INSERT INTO ` + table + ` VALUES ('absent', 1)`
			var first, second error
			done, stalled := one.Stalls(func() {
				_, first = one.Session.Conn().ExecContext(s.Context(), insert)
			})
			if !stalled {
				s.Fatal("the insert did not wait for the other's gap")
			}
			_, second = two.Session.Conn().ExecContext(s.Context(), insert)
			<-done
			deadlock := errors.Join(first, second)
			if deadlock == nil || !strings.Contains(deadlock.Error(), "1213") {
				s.Errorf("%v, want a deadlock: the interleaving finds nothing wrong", deadlock)
			}
			for _, p := range []*servertest.Party{one, two} {
				p.Exec(`ROLLBACK`)
			}
		})
	}
}

// Our statements take no gap locks: many that make the same keys and different ones at the same
// moment get no deadlock, not even one that is retried unseen.
func TestMakingRowsDoesNotDeadlock(t *testing.T) {
	eachStrategy(t, func(s *servertest.Scene, st rowlock.Strategy) {
		const rounds = 12
		var wg sync.WaitGroup
		for worker := range 8 {
			p := s.Party(st)
			wg.Go(func() {
				for i := range rounds {
					for _, key := range []string{
						servertest.Numbered(i), servertest.Numbered(100*i + worker),
						"gap" + servertest.Numbered(rounds-i),
					} {
						acquireBeside(s, p, key)
					}
				}
			})
		}
		wg.Wait()
	})
}

// acquireBeside acquires and releases key, and fails the test on any error that contention does
// not explain.
func acquireBeside(s *servertest.Scene, p *servertest.Party, key string) {
	a := p.Acquire(key)
	for range 20 {
		if a.Err == nil || !errors.Is(a.Err, sqlstore.ErrRowShape) &&
			!errors.Is(a.Err, sqlstore.ErrRowLocked) {
			break
		}
		a = p.Acquire(key)
	}
	if a.Err != nil {
		s.Errorf("%q: %v", key, a.Err)
	}
}
