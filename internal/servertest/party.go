package servertest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Party is one of two sessions that a test leads through an interleaving: a pinned connection's
// connection, but for its patience, so that a statement stays where it was stopped.
type Party struct {
	s        *Scene
	Session  *conn.Session
	strategy rowlock.Strategy
	id       int64 // the server's
}

// Party opens a session whose statements wait 20 s for a lock.
func (s *Scene) Party(st rowlock.Strategy) *Party {
	s.Helper()
	conn, err := s.Env.Pool(s).Conn(s.Context())
	s.OK(err)
	p := &Party{s: s, Session: s.Session(s.Env.Dialect, conn), strategy: st}
	patient := `SET SESSION innodb_lock_wait_timeout = 20`
	session := `SELECT CONNECTION_ID()`
	if s.Is("postgres") {
		patient = `SELECT set_config('lock_timeout', '20s', false), set_config('statement_timeout', '20s', false)`
		session = `SELECT pg_backend_pid()`
	}
	s.Exec(p.Session.Conn(), patient)
	s.OK(p.Session.Conn().QueryRowContext(s.Context(), session).Scan(&p.id))
	return p
}

// Acquired is the result of a party's acquire.
type Acquired struct {
	lease.Lease
	Granted bool
	Err     error
}

// Acquire runs the statement that acquires key, once.
func (p *Party) Acquire(key string) Acquired {
	r := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: time.Minute}
	a, err := p.s.Env.Dialect.Acquire(context.WithoutCancel(p.s.Context()), p.Session, p.strategy, r)
	return Acquired{
		lease.Lease{Key: key, Owner: r.Owner, Token: a.Token}, err == nil && a.Granted, err,
	}
}

// Take acquires key, which must be free.
func (p *Party) Take(key string) lease.Lease {
	p.s.Helper()
	a := p.Acquire(key)
	if !a.Granted {
		p.s.Fatalf("%q was not granted: %v", key, a.Err)
	}
	return a.Lease
}

// Release releases l, which must be held.
func (p *Party) Release(l lease.Lease) {
	p.s.Helper()
	r, err := p.s.Env.Dialect.Release(context.WithoutCancel(p.s.Context()), p.Session, l)
	p.s.OK(err)
	if r.Gone {
		p.s.Fatalf("%q was gone", l.Key)
	}
}

// Exec runs a statement in the party's session.
func (p *Party) Exec(query string, args ...any) {
	p.s.Helper()
	p.s.Exec(p.Session.Conn(), query, args...)
}

// Stalls starts f, which runs one statement of p's, and returns when the server makes it wait for
// a lock. It returns false if f was done without waiting.
func (p *Party) Stalls(f func()) (done <-chan struct{}, stalled bool) {
	p.s.Helper()
	end := make(chan struct{})
	go func() {
		defer close(end)
		f()
	}()
	p.s.Eventually("the statement to wait for a lock", func() bool {
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

// waits asks the server. InnoDB's tables of transactions are not refreshed while they are read
// often, so that waits reads its printed status instead.
func (p *Party) waits() bool {
	p.s.Helper()
	if p.s.Is("postgres") {
		return p.s.Number(
			`SELECT count(*) FROM pg_stat_activity WHERE pid = ? AND wait_event_type = 'Lock'`, p.id) > 0
	}
	var kind, name, status string
	row := p.s.Env.DB.QueryRowContext(p.s.Context(), `SHOW ENGINE INNODB STATUS`)
	p.s.OK(row.Scan(&kind, &name, &status))
	for _, trx := range strings.Split(status, "---TRANSACTION ") {
		if strings.Contains(trx, "LOCK WAIT") &&
			strings.Contains(trx, fmt.Sprintf(" thread id %d,", p.id)) {
			return true
		}
	}
	return false
}

// Number reads one integer in the party's session.
func (p *Party) Number(query string) (n int64) {
	p.s.Helper()
	p.s.OK(p.Session.Conn().QueryRowContext(p.s.Context(), query).Scan(&n))
	return n
}
