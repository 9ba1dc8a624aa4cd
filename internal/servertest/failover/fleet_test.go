package failover

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

const (
	ttl     = 20 * time.Second
	workers = 8
	keys    = 3
)

// patience bounds every wait. What a test waits for comes much sooner, or never.
const patience = servertest.Patience

// fleet is clients whose workers lock few keys again and again, and what they were told.
type fleet struct {
	testing.TB
	clients []*rowlock.Client

	mu     sync.Mutex
	tokens map[string]rowlock.Token // the largest that was granted, by key
	grants int
	last   time.Time
	errors int
	why    error
}

// client is one process.
func client(tb testing.TB, db *sql.DB, d dialect.Dialect, change ...func(*rowlock.Config)) *rowlock.Client {
	tb.Helper()
	c, err := rowlock.Open(db, d, servertest.Config(append(change, servertest.WithTTL(ttl))...))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return c
}

// start has the workers begin. They end with the function that it returns, and before the clients
// do.
func start(tb testing.TB, clients ...*rowlock.Client) (f *fleet, stop func()) {
	f = &fleet{TB: tb, clients: clients, tokens: make(map[string]rowlock.Token)}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() { f.work(ctx, clients[i%len(clients)], fmt.Sprint("busy ", i%keys)) })
	}
	stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	tb.Cleanup(stop)
	f.awaitGrants(3 * workers)
	return f, stop
}

func (f *fleet) work(ctx context.Context, c *rowlock.Client, key string) {
	for ctx.Err() == nil {
		f.mu.Lock()
		before := f.tokens[key]
		f.mu.Unlock()
		l, err := c.Lock(ctx, key)
		if ctx.Err() != nil && err != nil {
			return
		}
		f.note(key, before, l, err)
		if err == nil {
			_ = l.Unlock(ctx) // an outage may cut it short: then the lease expires
			continue
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// note fails the test if a token is not larger than one that was granted before the call began, or
// was granted before.
func (f *fleet) note(key string, before rowlock.Token, l *rowlock.Lock, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.errors++
		f.why = err
		return
	}
	if l.Token() <= before || l.Token() == f.tokens[key] {
		f.Errorf("%q was granted with token %d after %d", key, l.Token(), max(before, f.tokens[key]))
	}
	f.tokens[key] = max(f.tokens[key], l.Token())
	f.grants++
	f.last = time.Now()
}

func (f *fleet) count() (grants, errors int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.grants, f.errors
}

// awaitGrants returns when n more locks were granted.
func (f *fleet) awaitGrants(n int) {
	f.Helper()
	before, _ := f.count()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if now, _ := f.count(); now >= before+n {
			return
		}
		if time.Since(began) > patience {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.Fatalf("no grant in %s; the last error is %v", patience, f.why)
		}
	}
}

// resumed is how long after the server was back the next lock was granted.
func (f *fleet) resumed(back time.Time) time.Duration {
	f.Helper()
	f.awaitGrants(1)
	took := time.Since(back)
	f.awaitGrants(5 * workers)
	_, errors := f.count()
	f.Logf("the next grant came %s after the server was back; %d calls had failed, the last with: %v",
		took.Round(time.Millisecond), errors, f.why)
	return took
}

// pending is a call for a lock that has not ended.
type pending struct {
	ended chan struct{}
	lock  *rowlock.Lock
	err   error
}

// waits has c wait for a key that is held.
func waits(tb testing.TB, c *rowlock.Client, key string) *pending {
	tb.Helper()
	p := &pending{ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(func() { cancel(); <-p.ended })
	before := c.Stats().Waiting
	go func() {
		defer close(p.ended)
		p.lock, p.err = c.Lock(ctx, key)
	}()
	servertest.Eventually(tb, "the call to wait", func() bool { return c.Stats().Waiting > before })
	return p
}

// granted returns the lock.
func (p *pending) granted(tb testing.TB) *rowlock.Lock {
	tb.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		tb.Fatal("the waiter was not granted the key")
	}
	if p.err != nil {
		tb.Fatalf("the waiter got %v", p.err)
	}
	return p.lock
}

func (p *pending) stillWaits(tb testing.TB) {
	tb.Helper()
	select {
	case <-p.ended:
		tb.Errorf("the wait has ended: %v, %v", p.lock, p.err)
	default:
	}
}
