package hazard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

// loadTime is how long a load runs on each database: seconds from ROWLOCK_HAZARD_SECONDS.
func loadTime() time.Duration {
	if testing.Short() {
		return 300 * time.Millisecond
	}
	return time.Duration(servertest.FromEnvironment("ROWLOCK_HAZARD_SECONDS", 2)) * time.Second
}

// granter is a lock service under load: ours, or one that is wrong.
type granter interface {
	// grant returns 0 if the key is held.
	grant(ctx context.Context, worker int, key string) (token lease.Token, release func() error, err error)
	// reap removes dead rows.
	reap(ctx context.Context) (int64, error)
}

// tally is the result of a load.
type tally struct {
	grants, reaped, regressions atomic.Int64

	mu   sync.Mutex
	last map[string]lease.Token
	errs []error
}

// granted is called by the holder, before it releases: no other can be granted the same key
// meanwhile.
func (t *tally) granted(key string, token lease.Token) {
	t.grants.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if token <= t.last[key] {
		t.regressions.Add(1)
	}
	t.last[key] = token
}

func (t *tally) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errs = append(t.errs, err)
}

// load has 12 workers lock six keys and one reap without pause, until ctx ends or enough returns
// true.
func load(ctx context.Context, g granter, enough func(*tally) bool) *tally {
	t := &tally{last: make(map[string]lease.Token)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for worker := range 12 {
		wg.Go(func() {
			for i := worker; ctx.Err() == nil && !enough(t); i++ {
				t.once(ctx, g, worker, servertest.Numbered(i%6))
				time.Sleep(rand.N(3 * time.Millisecond)) // or no row were ever dead for the reaper to find
			}
			cancel()
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			n, err := g.reap(ctx)
			t.reaped.Add(n)
			if err != nil && ctx.Err() == nil {
				t.failed(fmt.Errorf("reap: %w", err))
			}
		}
	})
	wg.Wait()
	return t
}

func (t *tally) once(ctx context.Context, g granter, worker int, key string) {
	token, release, err := g.grant(ctx, worker, key)
	if err != nil && ctx.Err() == nil {
		t.failed(err)
	}
	if err != nil || token == 0 {
		return
	}
	t.granted(key, token)
	if err := release(); err != nil {
		t.failed(err)
	}
}

// ours are three processes and a fourth that sweeps.
type ours struct {
	clients []*rowlock.Client
	sweeper lease.Sweeper
}

func newOurs(s *servertest.Scene) ours {
	s.Helper()
	o := ours{sweeper: store(s)}
	for i := range 3 {
		o.clients = append(o.clients, s.Client(servertest.WithStrategy(servertest.Strategies[i%2])))
	}
	return o
}

// store is the store beneath a client.
func store(s *servertest.Scene) *table.Store {
	s.Helper()
	store, _, err := table.Open(s.Context(), s.Env.Pool(s), s.Env.Dialect,
		table.Options{Connections: 1, Timeout: 5 * time.Second})
	s.OK(err)
	s.Cleanup(func() { _ = store.Close() })
	return store
}

func (o ours) grant(ctx context.Context, worker int, key string) (lease.Token, func() error, error) {
	l, err := o.clients[worker%len(o.clients)].TryLock(ctx, key)
	if errors.Is(err, rowlock.ErrHeld) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	return l.Token(), func() error { return l.Unlock(ctx) }, nil
}

func (o ours) reap(ctx context.Context) (int64, error) {
	return o.sweeper.Sweep(ctx, lease.SweepOptions{Batch: 10})
}

// naive deletes dead rows and begins again with token 1.
type naive struct {
	s     *servertest.Scene
	db    *sql.DB
	table string
}

func newNaive(s *servertest.Scene) naive {
	s.Helper()
	n := naive{s, s.Env.Pool(s), s.Env.Dialect.Names().Prefix + "naive"}
	n.db.SetMaxOpenConns(8)
	s.Exec(s.Env.DB,
		`CREATE TABLE `+n.table+
			` (k VARCHAR(50) PRIMARY KEY, holder INT NOT NULL, token BIGINT NOT NULL)`)
	s.Cleanup(func() { _, _ = s.Env.DB.Exec(`DROP TABLE ` + n.table) })
	return n
}

func (n naive) grant(ctx context.Context, worker int,
	key string,
) (token lease.Token, release func() error, err error) {
	release = func() error {
		_, err := n.run(context.WithoutCancel(ctx),
			`UPDATE `+n.table+` SET holder = 0 WHERE k = ? AND holder = ?`, key, worker+1)
		return err
	}
	took, err := n.run(ctx,
		`UPDATE `+n.table+` SET holder = ?, token = token + 1 WHERE k = ? AND holder = 0`, worker+1, key)
	if err == nil && took == 0 {
		if took, _ = n.run(ctx, `INSERT INTO `+n.table+` VALUES (?, ?, 1)`, key, worker+1); took == 0 {
			return 0, nil, nil
		}
	}
	if err != nil {
		return 0, nil, nil // another worker was in the way
	}
	err = n.db.QueryRowContext(context.WithoutCancel(ctx),
		n.s.Env.SQL(`SELECT token FROM `+n.table+` WHERE k = ?`), key).Scan(&token)
	return token, release, err
}

func (n naive) reap(ctx context.Context) (int64, error) {
	reaped, _ := n.run(ctx, `DELETE FROM `+n.table+` WHERE holder = 0`)
	return reaped, nil
}

func (n naive) run(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := n.db.ExecContext(ctx, n.s.Env.SQL(query), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func TestTokensNeverRegressWhileDeadRowsAreReaped(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		var t *tally
		for range 10 { // a machine that has other work may grant nothing in the first
			opened := newOurs(s) // which can take longer than the load
			ctx, cancel := context.WithTimeout(s.Context(), loadTime())
			t = load(ctx, opened, func(*tally) bool { return false })
			cancel()
			if t.grants.Load() > 0 && t.reaped.Load() > 0 {
				break
			}
		}
		s.Logf("%d grants, %d rows reaped, %d regressions", t.grants.Load(), t.reaped.Load(),
			t.regressions.Load())
		if t.grants.Load() == 0 || t.reaped.Load() == 0 {
			s.Error("nothing was tested")
		}
		if t.regressions.Load() != 0 {
			s.Error("a token was granted that is not above the one before")
		}
		if err := errors.Join(t.errs...); err != nil {
			s.Errorf("%d errors, the first: %v", len(t.errs), t.errs[0])
		}
	})
}

// The same load finds what is wrong with the naive form. Without this, the test above might prove
// nothing.
func TestTokensOfTheNaiveFormRegress(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		ctx, cancel := context.WithTimeout(s.Context(), servertest.Patience)
		defer cancel()
		t := load(ctx, newNaive(s), func(t *tally) bool { return t.regressions.Load() >= 3 })
		s.Logf("%d grants, %d rows reaped, %d regressions", t.grants.Load(), t.reaped.Load(),
			t.regressions.Load())
		if t.regressions.Load() == 0 {
			s.Error("the load found nothing wrong with tokens that begin again at 1")
		}
	})
}
