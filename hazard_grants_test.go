package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// crowd is 64 goroutines in four processes.
func (s *scene) crowd(st rowlock.Strategy) (clients []*rowlock.Client) {
	s.Helper()
	for range 4 {
		clients = append(clients, s.client(withStrategy(st)))
	}
	return clients
}

// Whoever comes to a key that nobody has locked before finds no row, and so do all the others.
func TestAFreshKeyIsGrantedExactlyOnce(t *testing.T) {
	eachScene(t, func(s *scene) {
		keys := fromEnvironment("ROWLOCK_HAZARD_KEYS", 8)
		for _, st := range bothStrategies {
			clients := s.crowd(st)
			for i := range keys {
				key := st.String() + numbered(i)
				s.grantedOnce(clients, key, s.floor(key)+1)
			}
		}
	})
}

func (s *scene) grantedOnce(clients []*rowlock.Client, key string, want int64) {
	s.Helper()
	var mu sync.Mutex
	var tokens []int64
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
			tokens = append(tokens, l.Token())
		})
	}
	close(start)
	wg.Wait()
	if len(tokens) != 1 || tokens[0] != want {
		s.Errorf("%q: granted tokens %v, want %d alone", key, tokens, want)
	}
}

// Past the largest number that is exact everywhere, Postgres and MySQL would fail in the middle, and SQLite go on in floating
// point.
func TestTokensEndInAnErrorAndNotInANumber(t *testing.T) {
	eachScene(t, func(s *scene) {
		for _, st := range bothStrategies {
			c := s.client(withStrategy(st))
			key := "old " + st.String()
			s.ok(s.take(c, key).Unlock(s.Context()))
			s.env.SetToken(s, key, lease.MaxToken-2)
			last := s.take(c, key)
			if last.Token() != lease.MaxToken-1 {
				s.Errorf("token %d, want %d", last.Token(), lease.MaxToken-1)
			}
			s.ok(last.Unlock(s.Context()))
			for _, token := range []int64{lease.MaxToken - 1, lease.MaxToken, 1<<63 - 1} {
				s.env.SetToken(s, key, token)
				s.exhausted(c, key)
			}
			s.env.Expire(s, key)
			s.exhausted(c, key)

			// Its row stays for the operator to see: reaped, it would take the floor there, and all keys of the bucket with it.
			floor := s.floor(key)
			_, err := s.store().Sweep(s.Context(), lease.SweepOptions{})
			s.ok(err)
			s.exhausted(c, key)
			if after := s.floor(key); after != floor {
				s.Errorf("the floor went from %d to %d", floor, after)
			}
			s.exec(s.env.DB, `UPDATE {rowlock_floor} SET floor = ?`, lease.MaxToken-1) // by hand: no sweep does it
			if l, err := c.TryLock(s.Context(), "newer"); err == nil {
				s.Errorf("granted with token %d over floors that have run out", l.Token())
			}
			s.exec(s.env.DB, `UPDATE {rowlock_floor} SET floor = 0`)
		}
	})
}

func (s *scene) exhausted(c *rowlock.Client, key string) {
	s.Helper()
	l, err := c.TryLock(s.Context(), key)
	if err == nil {
		s.Errorf("%q was granted with token %d", key, l.Token())
		return
	}
	s.wantErr(err, rowlock.ErrTokenExhausted)
}

// A renewal may come late: after the lease has run out, the row was taken or removed. It must leave everything as it is.
func TestALateRenewalNeverRevivesInsertsOrSteals(t *testing.T) {
	eachScene(t, func(s *scene) {
		s.Parallel()
		late, rival := s.client(withTTL(1500*time.Millisecond), func(c *rowlock.Config) { c.RenewEvery = 150 * time.Millisecond }), s.client()
		for name, happen := range map[string]func(key string) *rowlock.Lock{
			"expired": func(key string) *rowlock.Lock { s.env.Expire(s, key); return nil },
			"taken":   func(key string) *rowlock.Lock { s.env.Expire(s, key); return s.take(rival, key) },
			"deleted": func(key string) *rowlock.Lock {
				s.exec(s.env.DB, `DELETE FROM {rowlock} WHERE {key} = ?`, []byte(key))
				return nil
			},
			"deleted and made anew": func(key string) *rowlock.Lock {
				s.exec(s.env.DB, `DELETE FROM {rowlock} WHERE {key} = ?`, []byte(key))
				return s.take(rival, key)
			},
			"swept": func(key string) *rowlock.Lock {
				s.env.Expire(s, key)
				_, err := s.store().Sweep(s.Context(), lease.SweepOptions{})
				s.ok(err)
				return nil
			},
			"truncated": func(string) *rowlock.Lock { s.exec(s.env.DB, s.truncate()); return nil },
		} {
			s.part(name, func(s *scene) {
				l := s.take(late, name)
				next := happen(name)
				before := s.dump()
				<-l.Context().Done() // the watchdog's next renewal finds out
				s.wantErr(context.Cause(l.Context()), rowlock.ErrLost)
				s.wantErr(l.Unlock(s.Context()), rowlock.ErrLost)
				if after := s.dump(); after != before {
					s.Errorf("before: %s\nafter: %s", before, after)
				}
				if next != nil {
					tx := s.begin(s.env.DB, nil)
					s.ok(next.Fence(s.Context(), tx))
					s.ok(tx.Commit())
					s.ok(next.Unlock(s.Context()))
				}
			})
		}
	})
}

func (s *scene) truncate() string {
	if s.is("sqlite") {
		return `DELETE FROM {rowlock}`
	}
	return `TRUNCATE TABLE {rowlock}`
}

// dump is every row but rowlock's own, in full.
func (s *scene) dump() string {
	s.Helper()
	rows, err := s.env.DB.QueryContext(s.Context(), s.env.SQL(`SELECT {key}, owner, token, expires_at FROM {rowlock} WHERE {key} > ? ORDER BY {key}`), []byte(lease.Reserved+"\xff"))
	s.ok(err)
	defer rows.Close()
	var all strings.Builder
	for rows.Next() {
		var v [4]sql.RawBytes
		s.ok(rows.Scan(&v[0], &v[1], &v[2], &v[3]))
		for _, b := range v {
			all.WriteString(string(b) + "|")
		}
		all.WriteByte('\n')
	}
	s.ok(rows.Err())
	return all.String()
}

// Under REPEATABLE READ, InnoDB locks the gap in which a row is missing, for as many as ask. Two who then insert wait for each
// other.
func TestTheNaiveSelectForUpdateDeadlocks(t *testing.T) {
	for _, product := range []string{"mysql", "mariadb"} {
		onScene(t, product, func(s *scene) {
			table := s.env.Dialect.Names().Prefix + "naive"
			s.exec(s.env.DB, `CREATE TABLE `+table+` (k VARCHAR(50) PRIMARY KEY, token BIGINT) ENGINE = InnoDB`)
			s.Cleanup(func() { s.env.Exec(s, `DROP TABLE `+table) })
			one, two := s.party(rowlock.Update), s.party(rowlock.Update)
			for _, p := range []*party{one, two} {
				p.exec(`SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ`)
				p.exec(`BEGIN`)
				p.exec(`SELECT * FROM ` + table + ` WHERE k = 'absent' FOR UPDATE`)
			}
			insert := `INSERT INTO ` + table + ` VALUES ('absent', 1)`
			var first, second error
			done, stalled := one.stalls(func() { _, first = one.session.Conn().ExecContext(s.Context(), insert) })
			if !stalled {
				s.Fatal("the insert did not wait for the other's gap")
			}
			_, second = two.session.Conn().ExecContext(s.Context(), insert)
			<-done
			deadlock := errors.Join(first, second)
			if deadlock == nil || !strings.Contains(deadlock.Error(), "1213") {
				s.Errorf("%v, want a deadlock: the interleaving finds nothing wrong", deadlock)
			}
			for _, p := range []*party{one, two} {
				p.exec(`ROLLBACK`)
			}
		})
	}
}

// Ours take no gap locks: many who make the same keys and different ones at the same moment get no deadlock, not even one
// that is tried again behind their backs.
func TestMakingRowsDoesNotDeadlock(t *testing.T) {
	eachStrategy(t, func(s *scene, st rowlock.Strategy) {
		const rounds = 12
		var wg sync.WaitGroup
		for worker := range 8 {
			p := s.party(st)
			wg.Go(func() {
				for i := range rounds {
					for _, key := range []string{numbered(i), numbered(100*i + worker), "gap" + numbered(rounds-i)} {
						p.acquireBeside(key)
					}
				}
			})
		}
		wg.Wait()
	})
}

// acquireBeside has no error but those that say that somebody else was there.
func (p *party) acquireBeside(key string) {
	a := p.acquire(key)
	for range 20 {
		if a.err == nil || !errors.Is(a.err, sqlstore.ErrRowShape) && !errors.Is(a.err, sqlstore.ErrRowLocked) {
			break
		}
		a = p.acquire(key)
	}
	if a.err != nil {
		p.s.Errorf("%q: %v", key, a.err)
	}
}
