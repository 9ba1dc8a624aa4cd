package transition_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/shedlock"
	"github.com/rowlockdb/rowlock/transition"
)

func TestMain(m *testing.M) { adaptertest.Main(m, work) }

// place is where a process is: it and its test have the same locks.
type place struct {
	db      *sql.DB
	dialect dialect.Dialect
	prefix  string
	ttl     time.Duration
}

// placeOf is a test's. Its processes are killed, and have a short TTL; the test is not.
func placeOf(e *testdb.Env) place {
	return place{e.DB, e.Dialect, e.Dialect.Names().Prefix, 15 * time.Second}
}

func (p place) name(key string) string { return p.prefix + key }

func (p place) id(key string) int64 {
	h := fnv.New64a()
	h.Write([]byte(p.name(key)))
	return int64(h.Sum64())
}

func (p place) redis() *redis.Client {
	options, err := redis.ParseURL(os.Getenv("ROWLOCK_TEST_REDIS"))
	if err != nil {
		panic(err)
	}
	return redis.NewClient(options)
}

func (p place) shedlock(ctx context.Context) (*rowlock.Client, error) {
	store, err := shedlock.Open(ctx, p.db, p.dialect, shedlock.Table(p.name("shedlock")))
	if err != nil {
		return nil, err
	}
	return rowlock.New(store, &rowlock.Config{TTL: p.ttl, PollMax: 20 * time.Millisecond, Logger: quiet})
}

// alone is an old lock as a program has it that knows nothing of this package.
type alone struct {
	held   func() error
	unlock func() error
}

// neighbour is a lock that is left.
type neighbour struct {
	on    []string // databases
	needs string
	old   func(p place) (transition.OldLock, error)
	alone func(ctx context.Context, p place) (alone, error)
}

var servers = []string{"mysql", "mariadb"}

var neighbours = map[string]neighbour{
	"pg_advisory_lock": {
		on:  []string{"postgres"},
		old: advisory,
		alone: func(ctx context.Context, p place) (a alone, err error) {
			conn, err := p.db.Conn(ctx)
			if err != nil {
				return a, err
			}
			if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", p.id("job")); err != nil {
				return a, err
			}
			return alone{func() error { return conn.PingContext(ctx) }, func() error {
				_, err := conn.ExecContext(context.Background(), "SELECT pg_advisory_unlock($1)", p.id("job"))
				return errors.Join(err, conn.Close())
			}}, nil
		},
	},
	"pg_advisory_xact_lock": {
		on:  []string{"postgres"},
		old: advisory,
		alone: func(ctx context.Context, p place) (a alone, err error) {
			tx, err := p.db.BeginTx(ctx, nil)
			if err != nil {
				return a, err
			}
			_, err = tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", p.id("job"))
			return alone{func() error { _, err := tx.ExecContext(ctx, "SELECT 1"); return err }, tx.Commit}, err
		},
	},
	"GET_LOCK": {
		on:  servers,
		old: func(p place) (transition.OldLock, error) { return transition.GetLock(p.db, p.name), nil },
		alone: func(ctx context.Context, p place) (a alone, err error) {
			conn, err := p.db.Conn(ctx)
			if err != nil {
				return a, err
			}
			got := false
			for !got && err == nil {
				err = conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, 5)", p.name("job")).Scan(&got)
			}
			return alone{func() error { return conn.PingContext(ctx) }, func() error {
				_, err := conn.ExecContext(context.Background(), "DO RELEASE_LOCK(?)", p.name("job"))
				return errors.Join(err, conn.Close())
			}}, err
		},
	},
	"redislock": {
		on: []string{"postgres"}, needs: "redis",
		old: func(p place) (transition.OldLock, error) {
			return transition.Redislock(p.redis(), p.ttl, p.name), nil
		},
		alone: func(ctx context.Context, p place) (a alone, err error) {
			client := p.redis()
			wait, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			l, err := redislock.Obtain(wait, client, p.name("job"), p.ttl,
				&redislock.Options{RetryStrategy: redislock.LinearBackoff(10 * time.Millisecond)})
			if err != nil {
				return a, err
			}
			stop := refresh(ctx, l, p.ttl)
			return alone{func() error { return l.Refresh(ctx, p.ttl, nil) }, func() error {
				stop()
				return errors.Join(l.Release(context.Background()), client.Close())
			}}, nil
		},
	},
	"shedlock": {
		on: []string{"postgres", "mysql"},
		old: func(p place) (transition.OldLock, error) {
			c, err := p.shedlock(context.Background())
			return transition.Client(c), err
		},
		alone: func(ctx context.Context, p place) (a alone, err error) {
			c, err := p.shedlock(ctx)
			if err != nil {
				return a, err
			}
			l, err := c.Lock(ctx, "job")
			if err != nil {
				return a, errors.Join(err, c.Close())
			}
			return alone{l.Context().Err, func() error { return errors.Join(l.Unlock(context.Background()), c.Close()) }}, nil
		},
	},
}

func advisory(p place) (transition.OldLock, error) { return transition.Advisory(p.db, p.id), nil }

// refresh keeps a lock of Redis while a section waits.
func refresh(ctx context.Context, l *redislock.Lock, ttl time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.Tick(ttl / 5); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
				_ = l.Refresh(ctx, ttl, nil)
			}
		}
	}()
	return func() { cancel(); <-done }
}

var quiet = slog.New(slog.DiscardHandler)

// stage starts a stage as a process has it whose database is the place's.
func stage(ctx context.Context, p place, s transition.Stage, old transition.OldLock, more func(*transition.Config)) (*transition.Locks, func(), error) {
	cfg := &rowlock.Config{TTL: p.ttl, RenewEvery: adaptertest.TTL / 3, PollMax: 20 * time.Millisecond, Logger: quiet}
	store, err := rowlock.OpenTable(p.db, p.dialect, cfg)
	if err != nil {
		return nil, nil, err
	}
	client, err := rowlock.Open(p.db, p.dialect, cfg)
	if err != nil {
		return nil, nil, err
	}
	c := transition.Config{Stage: s, Old: old, Locks: client, Notices: store, Quiet: time.Nanosecond, Logger: quiet}
	if more != nil {
		more(&c)
	}
	locks, err := transition.Start(ctx, c)
	return locks, func() {
		_, _ = client.Close(), store.Close()
	}, err
}

// work has a role: the neighbour, the stage, and after how many steps it dies.
func work(ctx context.Context, w *adaptertest.Worker) error {
	name, role, _ := strings.Cut(w.Role, " ")
	role, last, dies := strings.Cut(role, " ")
	n, p := neighbours[name], place{w.DB, w.Dialect, sqlstore.Of(w.Dialect).Names().Prefix, adaptertest.TTL}
	if role == "alone" {
		return workAlone(ctx, w, n, p)
	}
	old, err := n.old(p)
	if err != nil {
		return err
	}
	if dies {
		old = &mortal{OldLock: old, last: last}
	}
	s := map[string]transition.Stage{"both": transition.Both, "new": transition.New}[role]
	locks, end, err := stage(ctx, p, s, old, nil)
	if err != nil {
		return err
	}
	defer end()
	for ctx.Err() == nil {
		l, err := locks.Lock(ctx, "job")
		if errors.Is(err, transition.ErrOrder) || adaptertest.Passes(err) { // what one that was killed has left
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		_ = w.Section(ctx, l.Ours())
		if err := l.Unlock(ctx); err != nil && ctx.Err() == nil && !adaptertest.Passes(err) {
			return err
		}
	}
	return nil
}

func workAlone(ctx context.Context, w *adaptertest.Worker, n neighbour, p place) error {
	for ctx.Err() == nil {
		a, err := n.alone(ctx, p)
		if adaptertest.Passes(err) {
			continue
		}
		if err != nil {
			return err
		}
		_ = w.Unfenced(ctx, a.held)
		if err := a.unlock(); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "an old process:", err)
		}
	}
	return nil
}

// mortal dies as kill -9 has it, before or after a step.
type mortal struct {
	transition.OldLock
	last string
}

func (m *mortal) step(name string) {
	if m.last == name {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (m *mortal) Lock(ctx context.Context, key string, wait bool) (transition.OldHeld, error) {
	m.step("ours")
	h, err := m.OldLock.Lock(ctx, key, wait)
	if err != nil {
		return h, err
	}
	m.step("old")
	return mortalHeld{h, m}, nil
}

func (m *mortal) HeldAlone(ctx context.Context, key string) (bool, error) {
	m.step("look")
	return m.OldLock.HeldAlone(ctx, key)
}

type mortalHeld struct {
	transition.OldHeld
	m *mortal
}

func (h mortalHeld) Unlock(ctx context.Context) error {
	h.m.step("unlock")
	err := h.OldHeld.Unlock(ctx)
	h.m.step("unlocked")
	return err
}

// each runs f for each neighbour on each of its databases.
func each(t *testing.T, f func(t *testing.T, e *testdb.Env, name string, n neighbour)) {
	t.Helper()
	for name, n := range neighbours {
		for _, k := range testdb.Servers {
			for _, on := range n.on {
				if on != k.Name {
					continue
				}
				t.Run(name+"/"+on, func(t *testing.T) {
					t.Parallel()
					if n.needs != "" {
						testdb.Installed(t, n.needs)
					}
					e := k.Open(t)
					if name == "shedlock" {
						makeTable(t, e)
					}
					f(t, e, name, n)
				})
			}
		}
	}
}

func makeTable(t *testing.T, e *testdb.Env) {
	t.Helper()
	stamp := "TIMESTAMP(3) NOT NULL"
	if e.Driver == "mysql" {
		stamp = "DATETIME(3) NOT NULL"
	}
	table := e.Dialect.Names().Prefix + "shedlock"
	e.Exec(t, "CREATE TABLE "+table+" (name VARCHAR(64) NOT NULL PRIMARY KEY, lock_until "+stamp+
		", locked_at "+stamp+", locked_by VARCHAR(255) NOT NULL)")
	t.Cleanup(func() { e.Exec(t, "DROP TABLE "+table) })
}
