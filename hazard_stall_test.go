package rowlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// party is one of two sessions that a test leads through an interleaving: a lane's connection, but for its patience, so that
// a statement stays where it was stopped.
type party struct {
	s        *scene
	session  *sqlstore.Session
	strategy rowlock.Strategy
	id       int64 // the server's
}

func (s *scene) party(st rowlock.Strategy) *party {
	s.Helper()
	conn, err := s.env.Pool(s).Conn(s.Context())
	s.ok(err)
	p := &party{s: s, session: s.session(s.env.Dialect, conn), strategy: st}
	patient := `SET SESSION innodb_lock_wait_timeout = 20`
	who := `SELECT CONNECTION_ID()`
	if s.is("postgres") {
		patient = `SELECT set_config('lock_timeout', '20s', false), set_config('statement_timeout', '20s', false)`
		who = `SELECT pg_backend_pid()`
	}
	s.exec(p.session.Conn(), patient)
	s.ok(p.session.Conn().QueryRowContext(s.Context(), who).Scan(&p.id))
	return p
}

// acquired is what a party's acquire came to.
type acquired struct {
	lease.Lease
	granted bool
	err     error
}

func (p *party) acquire(key string) acquired {
	r := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: time.Minute}
	a, err := p.s.env.Dialect.Acquire(context.WithoutCancel(p.s.Context()), p.session, p.strategy, r)
	return acquired{lease.Lease{Key: key, Owner: r.Owner, Token: a.Token}, err == nil && a.Granted, err}
}

func (p *party) take(key string) lease.Lease {
	p.s.Helper()
	a := p.acquire(key)
	if !a.granted {
		p.s.Fatalf("%q was not granted: %v", key, a.err)
	}
	return a.Lease
}

func (p *party) release(l lease.Lease) {
	p.s.Helper()
	r, err := p.s.env.Dialect.Release(context.WithoutCancel(p.s.Context()), p.session, l)
	p.s.ok(err)
	if r.Gone {
		p.s.Fatalf("%q was gone", l.Key)
	}
}

func (p *party) exec(query string, args ...any) {
	p.s.Helper()
	p.s.exec(p.session.Conn(), query, args...)
}

// stalls starts f, which is to do one statement of p's, and returns when the server has it wait for a lock. It reports false
// if f was done without waiting.
func (p *party) stalls(f func()) (done <-chan struct{}, stalled bool) {
	p.s.Helper()
	end := make(chan struct{})
	go func() {
		defer close(end)
		f()
	}()
	p.s.eventually("the statement to wait for a lock", func() bool {
		select {
		case <-end:
			return true
		default:
			stalled = p.waits()
			return stalled
		}
	})
	return end, stalled
}

// waits asks the server. The tables in which InnoDB shows transactions are not renewed while somebody reads them often, so
// that what it prints for people is read instead.
func (p *party) waits() bool {
	p.s.Helper()
	if p.s.is("postgres") {
		return p.s.number(`SELECT count(*) FROM pg_stat_activity WHERE pid = ? AND wait_event_type = 'Lock'`, p.id) > 0
	}
	var kind, name, status string
	p.s.ok(p.s.env.DB.QueryRowContext(p.s.Context(), `SHOW ENGINE INNODB STATUS`).Scan(&kind, &name, &status))
	for _, trx := range strings.Split(status, "---TRANSACTION ") {
		if strings.Contains(trx, "LOCK WAIT") && strings.Contains(trx, fmt.Sprintf(" thread id %d,", p.id)) {
			return true
		}
	}
	return false
}

// eachStrategy runs f on every server with both strategies.
func eachStrategy(t *testing.T, f func(s *scene, st rowlock.Strategy)) {
	t.Helper()
	eachServer(t, func(s *scene) {
		for _, st := range bothStrategies {
			s.part(st.String(), func(s *scene) { f(s, st) })
		}
	})
}

// A statement may compute its token, then wait for another's commit, and be granted after tokens that were granted meanwhile.
// Its own must be above them: it is computed on the row as it is when the statement has it, or not used.
func TestAStalledStatementIsNotGrantedAnOldToken(t *testing.T) {
	eachStrategy(t, func(s *scene, st rowlock.Strategy) {
		fast, slow := s.party(st), s.party(st)
		for row, key := range map[string]string{"absent": "absent " + st.String(), "free": "free " + st.String()} {
			if row == "free" {
				fast.release(fast.take(key))
			}
			fast.exec(`BEGIN`)
			last := fast.take(key)
			var got acquired
			done, _ := slow.stalls(func() { got = slow.acquire(key) })
			for range 3 {
				fast.release(last)
				last = fast.take(key)
			}
			fast.release(last)
			fast.exec(`COMMIT`)
			<-done
			for !got.granted { // it looks again, as the store does
				if got.err != nil && sqlstore.Judge(s.env.Dialect, got.err).Class != sqlstore.Conflict {
					s.Fatalf("%q: %v", key, got.err)
				}
				got = slow.acquire(key)
			}
			if got.Token <= last.Token {
				s.Errorf("%q: token %d was granted after %d", key, got.Token, last.Token)
			}
		}
	})
}

// While a statement that has read the floor waits, the reaper cannot raise it.
func TestTheReaperCannotComeBetweenAFloorAndItsRow(t *testing.T) {
	eachStrategy(t, func(s *scene, st rowlock.Strategy) {
		other, slow, reaper, key := s.party(st), s.party(st), s.party(st), st.String()
		other.exec(`BEGIN`)
		other.exec(`INSERT INTO {rowlock} ({key}, token, acquired_at, expires_at) VALUES (?, 1, {now}, {now})`, []byte(key))
		var got acquired
		done, stalled := slow.stalls(func() { got = slow.acquire(key) })
		if !stalled {
			s.Fatal("the statement did not wait")
		}
		reaper.exec(`BEGIN`)
		var floor int64
		lock := s.env.SQL(`SELECT floor FROM {rowlock_floor} WHERE bucket = ? FOR UPDATE NOWAIT`)
		err := reaper.session.Conn().QueryRowContext(s.Context(), lock, lease.Bucket(key)).Scan(&floor)
		if sqlstore.Judge(s.env.Dialect, err).Class != sqlstore.Conflict {
			s.Errorf("the floor can be locked while a row is made that counts from it: %v", err)
		}
		reaper.exec(`ROLLBACK`)
		other.exec(`ROLLBACK`)
		<-done
		if !got.granted || got.Token != floor+1 {
			s.Errorf("%+v, want token %d", got, floor+1)
		}
	})
}

// The form that most people write takes the token from a sequence, which hands out numbers in another order than rows are
// locked. The same interleaving shows it.
func TestTokensOfASequenceRegress(t *testing.T) {
	upserts := map[string]string{
		"postgres": `INSERT INTO TABLE VALUES (1, nextval('SEQ')) ON CONFLICT (k) DO UPDATE SET token = EXCLUDED.token`,
		"mariadb":  `INSERT INTO TABLE VALUES (1, NEXTVAL(SEQ)) ON DUPLICATE KEY UPDATE token = VALUES(token)`,
	}
	for product, upsert := range upserts {
		onScene(t, product, func(s *scene) {
			table, seq := s.env.Dialect.Names().Prefix+"naive", s.env.Dialect.Names().Prefix+"seq"
			upsert := strings.NewReplacer("TABLE", table, "SEQ", seq).Replace(upsert)
			s.exec(s.env.DB, `CREATE TABLE `+table+` (k INT PRIMARY KEY, token BIGINT NOT NULL)`)
			s.exec(s.env.DB, `CREATE SEQUENCE `+seq)
			s.Cleanup(func() { s.env.Exec(s, `DROP TABLE `+table); s.env.Exec(s, `DROP SEQUENCE `+seq) })

			fast, slow := s.party(rowlock.Update), s.party(rowlock.Update)
			fast.exec(`BEGIN`)
			fast.exec(upsert)
			done, stalled := slow.stalls(func() { slow.exec(upsert) })
			if !stalled {
				s.Fatal("the statement did not wait")
			}
			fast.exec(upsert)
			last := fast.number(`SELECT token FROM ` + table)
			fast.exec(`COMMIT`)
			<-done
			if got := slow.number(`SELECT token FROM ` + table); got >= last {
				s.Errorf("token %d after %d: the interleaving finds nothing wrong with a sequence", got, last)
			}
		})
	}
}

func (p *party) number(query string) (n int64) {
	p.s.Helper()
	p.s.ok(p.session.Conn().QueryRowContext(p.s.Context(), query).Scan(&n))
	return n
}

// A statement that waits for a row reads the clock after, or else what it grants is cut short by as long as it has waited. On
// MySQL the clock stands from when the statement began, which is still not before the holder began to count.
func TestALeaseIsNotCutShortByTheWaitForItsRow(t *testing.T) {
	const wait = 700 * time.Millisecond
	eachServer(t, func(s *scene) {
		other, slow := s.party(rowlock.Update), s.party(rowlock.Update)
		other.release(other.take("k"))
		other.exec(`BEGIN`)
		other.exec(`UPDATE {rowlock} SET note = 'busy' WHERE {key} = ?`, []byte("k"))
		sent := time.Now()
		var got acquired
		done, stalled := slow.stalls(func() { got = slow.acquire("k") })
		if stalled == s.is("mariadb") {
			s.Fatalf("waited: %t; MariaDB is told not to wait", stalled)
		}
		if stalled {
			s.atLeast(wait - time.Since(sent))
		}
		freed := time.Now()
		other.exec(`COMMIT`)
		<-done
		if !stalled {
			if !errors.Is(got.err, sqlstore.ErrRowLocked) && !errors.Is(got.err, sqlstore.ErrRowShape) {
				s.Errorf("%+v, want to be told that the row is locked", got)
			}
			return
		}
		left := s.remaining("k")
		least := time.Minute - time.Since(freed)
		if s.is("mysql") {
			least = time.Minute - time.Since(sent)
		}
		if !got.granted || left < least {
			s.Errorf("granted: %t, for another %s of a minute after a wait of %s", got.granted, left, wait)
		}
	})
}

// remaining is how long a key's lease has, by the database's clock.
func (s *scene) remaining(key string) time.Duration {
	s.Helper()
	records, err := s.store().Inspect(s.Context(), lease.Filter{Keys: []string{key}})
	s.ok(err)
	if len(records) != 1 {
		s.Fatalf("%q has %d rows", key, len(records))
	}
	return records[0].Remaining
}

// Waiting for a lock is not holding it: the lease begins when the key is granted.
func TestALeaseIsWholeAfterALongWait(t *testing.T) {
	eachScene(t, func(s *scene) {
		s.Parallel()
		const wait = 3 * time.Second // what a busy machine takes for a hand-over must be less
		c := s.client(withTTL(time.Minute))
		first := s.take(c, "k")
		got := make(chan *rowlock.Lock)
		go func() { got <- s.take(s.client(withTTL(time.Minute)), "k") }()
		s.atLeast(wait)
		s.ok(first.Unlock(s.Context()))
		l := <-got
		if left := s.remaining("k"); left < time.Minute-wait+100*time.Millisecond {
			s.Errorf("%s of a minute are left after a wait of %s", left, wait)
		}
		if left := time.Until(l.Deadline()); left < time.Minute-6*time.Second-wait+100*time.Millisecond {
			s.Errorf("it is trusted for %s after a wait of %s", left, wait)
		}
	})
}
