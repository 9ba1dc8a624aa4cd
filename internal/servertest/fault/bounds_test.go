package fault

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// spare is how much longer than its ctx, or without a deadline than its TTL, a call may take: two
// seconds, and what a machine is late that has other work.
const spare = 5 * time.Second

// boundedCall is a call to a client whose database does not answer.
type boundedCall struct {
	name string
	call func(ctx context.Context, c *rowlock.Client, key string) error
}

var boundedCalls = []boundedCall{
	{"TryLock", func(ctx context.Context, c *rowlock.Client, key string) error {
		_, err := c.TryLock(ctx, key)
		return err
	}},
	{"Lock", func(ctx context.Context, c *rowlock.Client, key string) error {
		_, err := c.Lock(ctx, key)
		return err
	}},
	{"Do", func(ctx context.Context, c *rowlock.Client, key string) error {
		return c.Do(ctx, key, func(context.Context, *rowlock.Lock) error { return nil })
	}},
	{"TryLockAll", func(ctx context.Context, c *rowlock.Client, key string) error {
		_, err := c.TryLockAll(ctx, []string{key, key + "b", key + "c"})
		return err
	}},
	{"LockAll", func(ctx context.Context, c *rowlock.Client, key string) error {
		_, err := c.LockAll(ctx, []string{key, key + "b", key + "c"})
		return err
	}},
	{"TryLockAny", func(ctx context.Context, c *rowlock.Client, key string) error {
		_, err := c.TryLockAny(ctx, []string{key, key + "b", key + "c"})
		return err
	}},
	{"LockAny", func(ctx context.Context, c *rowlock.Client, key string) error {
		_, err := c.LockAny(ctx, []string{key, key + "b", key + "c"})
		return err
	}},
}

// hangings are ways in which a database stops answering.
var hangings = []struct {
	name   string
	silent bool // for ever
	hang   func(t *testing.T, e *testdb.Env) (pool *sql.DB, hang func())
}{
	// As a server that is stopped: connections are made, and nothing is answered on them.
	{"no answer", true, func(t *testing.T, e *testdb.Env) (*sql.DB, func()) {
		through, h := e.BehindHole(t)
		return through.Pool(t), h.Vanish
	}},
	// Every connection of the client is lost, and the application takes all that the pool then
	// offers.
	{"no connection", false, func(t *testing.T, e *testdb.Env) (*sql.DB, func()) {
		through, h := e.BehindHole(t)
		pool := through.Pool(t)
		pool.SetMaxOpenConns(4)
		ctx, cancel := context.WithCancel(context.Background())
		var application sync.WaitGroup
		t.Cleanup(func() { cancel(); application.Wait() })
		return pool, func() {
			for range 8 {
				application.Go(func() {
					if conn, err := pool.Conn(ctx); err == nil {
						<-ctx.Done()
						_ = conn.Close()
					}
				})
			}
			servertest.Eventually(t, "the pool to be exhausted",
				func() bool { return pool.Stats().WaitCount >= 7 })
			h.Cut()
		}
	}},
}

// No call takes longer than its ctx, or without a deadline than its TTL, and a moment for its
// end, whatever hangs.
func TestNoCallOutlastsItsBound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a TTL")
	}
	const within = time.Second
	ttls := []time.Duration{3 * time.Second}
	// it takes minutes; `make soak` has them
	if servertest.FromEnvironment("ROWLOCK_SOAK_MS", 0) >= 60_000 {
		ttls = append(ttls, 30*time.Second)
	}
	for _, ttl := range ttls {
		for _, how := range hangings {
			for _, fair := range []bool{false, true} {
				t.Run(fmt.Sprintf("TTL %s, %s, fair %t", ttl, how.name, fair), func(t *testing.T) {
					t.Parallel()
					testdb.Each(t, func(t *testing.T, e *testdb.Env) {
						if e.Name == "sqlite" {
							t.Skip("there is no network to hang on")
						}
						pool, hang := how.hang(t, e)
						c := servertest.Open(t, pool, e, func(cfg *rowlock.Config) { cfg.TTL, cfg.Fair = ttl, fair })
						held := servertest.Locked(t)(c.TryLock(t.Context(), "held"))
						hang()
						var all sync.WaitGroup
						timed := func(what string, bound time.Duration, call func() error) {
							began := time.Now()
							err := call()
							took := time.Since(began).Round(10 * time.Millisecond)
							t.Logf("%s took %s: %v", what, took, err)
							switch {
							case took > bound+spare:
								t.Errorf("%s took %s, want at most %s: %v", what, took, bound+spare, err)
							case err == nil && how.silent && what != "Close":
								t.Errorf("%s: no error, though nothing was answered", what)
							}
						}
						for i, b := range boundedCalls {
							all.Go(func() {
								ctx, cancel := context.WithTimeout(t.Context(), within)
								defer cancel()
								timed(b.name+" with a deadline", within,
									func() error { return b.call(ctx, c, fmt.Sprint("a", i)) })
							})
							all.Go(func() {
								timed(b.name, ttl,
									func() error { return b.call(context.Background(), c, fmt.Sprint("b", i)) })
							})
						}
						all.Go(func() {
							timed("Unlock", time.Second, func() error { return held.Unlock(context.Background()) })
						})
						all.Wait()
						timed("Close", 10*time.Second, c.Close)
					})
				})
			}
		}
	}
}
