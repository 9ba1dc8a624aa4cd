package table_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A client's machine can lose its power, or its network, between any two statements. The server is
// not told: as far as it knows the session goes on, and so does a transaction that was open. How
// soon can others have the key? A server ends a transaction in which nothing comes after 4 s. One
// that no setting ends keeps its locks for hours: what a busy machine takes more is no matter.
const (
	vanishingTTL = time.Second
	soonFree     = vanishingTTL + 20*time.Second
)

// vanishing is a call in the middle of which its client vanishes. begin puts the key into the state
// it needs.
type vanishing struct {
	name  string
	begin func(t *testing.T, e *testdb.Env, s *table.Store) func(ctx context.Context, s *table.Store) error
}

const vanishingKey = "key"

func briefly(key string) lease.AcquireRequest {
	return lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: vanishingTTL}
}

// brief holds the key for a moment.
func brief(t *testing.T, s *table.Store) lease.Lease {
	t.Helper()
	r := briefly(vanishingKey)
	a, err := ask(t.Context(), s, r)
	if err != nil || !a.Granted {
		t.Fatalf("got %+v, %v", a, err)
	}
	return lease.Lease{Key: r.Key, Owner: r.Owner, Token: a.Token}
}

// ticketed is a request whose owner waits for the key.
func ticketed(t *testing.T, s *table.Store) lease.AcquireRequest {
	t.Helper()
	r := briefly(vanishingKey)
	_, err := s.Join(t.Context(), []lease.Ticket{{AcquireRequest: r, Priority: 1}})
	wantIs(t, err, nil)
	return r
}

func claiming(r lease.AcquireRequest) func(context.Context, *table.Store) error {
	return func(ctx context.Context, s *table.Store) error {
		_, err := s.Claim(ctx, []lease.AcquireRequest{r})
		return err
	}
}

var vanishings = []vanishing{
	{"renew", func(t *testing.T, _ *testdb.Env, s *table.Store) func(context.Context, *table.Store) error {
		// One that is lost has the rest asked for, where that takes statements of its own.
		reqs := []lease.RenewRequest{{Lease: brief(t, s), TTL: vanishingTTL}, {Lease: lease.Lease{Key: "lost", Owner: lease.NewOwner(), Token: 1}, TTL: ttl}}
		return func(ctx context.Context, s *table.Store) error {
			_, err := s.Renew(ctx, reqs)
			return err
		}
	}},
	{"claim", func(t *testing.T, _ *testdb.Env, s *table.Store) func(context.Context, *table.Store) error {
		release(t, s, brief(t, s))
		return claiming(ticketed(t, s))
	}},
	{"claim an absent key", func(t *testing.T, _ *testdb.Env, s *table.Store) func(context.Context, *table.Store) error {
		return claiming(ticketed(t, s))
	}},
	{"pass", func(t *testing.T, _ *testdb.Env, s *table.Store) func(context.Context, *table.Store) error {
		l := brief(t, s)
		ticketed(t, s)
		return func(ctx context.Context, s *table.Store) error {
			_, err := s.Pass(ctx, []lease.Lease{l})
			return err
		}
	}},
	{"sweep", func(t *testing.T, e *testdb.Env, s *table.Store) func(context.Context, *table.Store) error {
		release(t, s, brief(t, s))
		e.Exec(t, `UPDATE {rowlock} SET expires_at = {now} - {second}`)
		return func(ctx context.Context, s *table.Store) error {
			_, err := s.Sweep(ctx, lease.SweepOptions{})
			return err
		}
	}},
}

// Each run vanishes before the odd operations or the even ones of each call, as it draws;
// `make conformance` before all.
func TestAClientThatVanishesInTheMiddleOfACallKeepsNothingLocked(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Parallel()
	step, spared := 2, testdb.Spared(t)
	if testdb.Whole() {
		step = 1
	}
	for _, kind := range []string{"postgres", "pgbouncer", "mariadb", "mysql"} {
		for _, v := range vanishings {
			if kind == spared {
				continue
			}
			t.Run(kind+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				var wg sync.WaitGroup
				defer wg.Wait()
				first := 1 + rand.IntN(step)
				t.Logf("before operation %d, and each %d after it", first, step)
				for n := first; v.vanish(t, kind, int64(n), &wg); n += step {
				}
			})
		}
	}
}

// vanish has a client vanish before its n-th operation is sent, and sees how long others wait. It
// reports false if the call ended before that.
func (v vanishing) vanish(t *testing.T, kind string, n int64, wg *sync.WaitGroup) (reached bool) {
	_, e := byWayOf(t, kind)
	h, source := e.Holed(t)
	faults := &faultdb.Switch{}
	pool, err := faultdb.Open(e.Driver, source, faults)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	s, _, err := table.Open(t.Context(), pool, e.Dialect, table.Options{Connections: 1, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	clean := openOn(t, e, e.Dialect, false)

	do := v.begin(t, e, clean)
	ctx, cancel := context.WithCancel(t.Context())
	vanished, done := make(chan faultdb.Op, 1), make(chan error, 1)
	var ops atomic.Int64
	faults.Set(faultdb.Func(func(op faultdb.Op) faultdb.Fault {
		if ops.Add(1) == int64(n) {
			h.Cut()
			vanished <- op
		}
		return faultdb.None
	}))
	go func() { done <- do(ctx, s) }()
	select {
	case err := <-done:
		cancel()
		wantIs(t, err, nil)
		return false
	case op := <-vanished:
		cancel()
		wg.Go(func() { wantSoonFree(t, clean, op) })
		return true
	}
}

// byWayOf is on, and the postgres server by way of PgBouncer. A client that vanishes in a
// transaction keeps a connection of the pooler's for seconds: with four, others would wait for one.
func byWayOf(t *testing.T, kind string) (direct, e *testdb.Env) {
	t.Helper()
	if kind != testdb.PgBouncer.Name {
		e = on(t, kind)
		return e, e
	}
	direct, pooled := behind(t)
	pooled.Source = with(t, pooled.Source, func(u *url.URL) { u.Path = "/rowlock_roomy" })
	pooled.DB = pooled.Pool(t)
	return direct, pooled
}

// wantSoonFree waits for the key to be granted to another.
func wantSoonFree(t *testing.T, s *table.Store, before faultdb.Op) {
	began := time.Now()
	for {
		a, err := ask(t.Context(), s, briefly(vanishingKey))
		took := time.Since(began).Round(10 * time.Millisecond)
		switch {
		case err == nil && a.Granted:
			t.Logf("vanished before %s: had after %s", what(before), took)
			return
		case took > soonFree:
			t.Errorf("vanished before %s: not to be had after %s: %+v, %v", what(before), took, a, err)
			return
		}
		pause(t.Context())
	}
}

func what(op faultdb.Op) string {
	words := strings.Fields(op.Query)
	return fmt.Sprint(op.Kind, " ", strings.Join(words[:min(4, len(words))], " "))
}
