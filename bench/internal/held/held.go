// Package held measures what many locks cost that are held at once: memory, goroutines, renewals.
package held

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/internal/faultdb"
)

// Steps is how many steps a measurement has: taking the locks, and the renewal periods that are
// watched.
const Steps = 1 + watched

const watched = 2

// patience bounds how long the locks are taken for.
const patience = 6 * time.Minute

// Config says what to hold.
type Config struct {
	Locks, Connections int
	TTL                time.Duration
	Helpers            int // goroutines that take them and give them back

	taken func(*crowd) error // a test's, when all are held
}

// Cost is what many held locks cost.
type Cost struct {
	Locks      int
	Renewals   float64 // statements in a third of the TTL
	PerRenewal float64 // leases each of them extended, at least
	Goroutines int     // more than before
	Bytes      float64 // of heap for a lock
	Lost       int

	// Taking and Holding are how many were lost by the time that all were taken, and by the end of
	// the periods. The others were lost while they were given back.
	Taking, Holding int
	Taken           time.Duration // that it took to take them

	// Client and Server are how many processors were busy while renewals were watched. Server is
	// NaN where there is none, or its process is not known.
	Client, Server float64
}

// crowd is a client with many locks.
type crowd struct {
	Config
	pool     *sql.DB
	client   *rowlock.Client
	locks    []*rowlock.Lock
	renewals atomic.Int64
	lost     sync.Map // by key: each lock counts once, however often it is found to be lost
}

// Many holds many locks at once and watches their renewals.
func Many(ctx context.Context, d *rig.Database, cfg Config, p *rig.Progress) (h *Cost, err error) {
	c := &crowd{Config: cfg, locks: make([]*rowlock.Lock, cfg.Locks)}
	if err := c.open(d); err != nil {
		return nil, err
	}
	defer func() {
		if failed := c.close(ctx); err == nil { // else this is why
			err = failed
		}
	}()
	p.Say(d.Name, fmt.Sprintf("taking %d locks", c.Locks))
	before, began := look(), time.Now()
	if err := c.takeAll(ctx); err != nil {
		return nil, err
	}
	taken, taking := time.Since(began), c.lostLocks()
	after := look()
	p.Step()
	p.Say(d.Name, "holding them")
	h = &Cost{Locks: c.Locks, Goroutines: after.goroutines - before.goroutines, Taken: taken, Taking: taking}
	h.Bytes = (after.heap - before.heap) / float64(c.Locks)
	if c.taken != nil {
		if err := c.taken(c); err != nil {
			return nil, err
		}
	}
	if err := c.watch(ctx, d, h, p); err != nil {
		return nil, err
	}
	h.Holding = c.lostLocks()
	p.Say(d.Name, "giving them back")
	err = c.each(func(n int) error { return c.release(ctx, c.locks[n]) })
	h.Lost = c.lostLocks()
	return h, err
}

// renewal is in each statement that renews. The rest of its text is that of the place where the
// client has found the tables.
const renewal = "/* rowlock renew */"

// open makes a client whose statements are counted on their way, and has it do everything once.
func (c *crowd) open(d *rig.Database) (err error) {
	c.pool, err = faultdb.Open(d.Driver, d.Source, faultdb.Func(func(op faultdb.Op) faultdb.Fault {
		if op.Executes() && strings.Contains(op.Query, renewal) {
			c.renewals.Add(1)
		}
		return faultdb.None
	}))
	if err != nil {
		return err
	}
	c.client, err = rowlock.Open(c.pool, d.Dialect, &rowlock.Config{
		TTL: c.TTL, Connections: c.Connections, Strategy: rowlock.Insert, Logger: slog.New(slog.DiscardHandler),
		Reaper: rowlock.ReaperConfig{Off: true}, Hooks: rowlock.Hooks{Lost: c.hasLost},
	})
	return err
}

func (c *crowd) close(ctx context.Context) error {
	err := ctx.Err()
	if c.client != nil {
		err = errors.Join(err, c.client.Close())
	}
	return errors.Join(err, c.pool.Close())
}

// takeAll ends where renewals of what is held leave no time to take more.
func (c *crowd) takeAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := c.each(func(n int) error { return c.take(ctx, n) })
	if errors.Is(err, context.DeadlineExceeded) {
		taken := slices.DeleteFunc(slices.Clone(c.locks), func(l *rowlock.Lock) bool { return l == nil })
		return fmt.Errorf("%d of %d locks are taken after %v, and renewals leave no time for more",
			len(taken), c.Locks, patience)
	}
	return err
}

func (c *crowd) take(ctx context.Context, n int) (err error) {
	c.locks[n], err = c.client.Lock(ctx, race.Key('h', n%c.Helpers, n))
	return err
}

// release gives a lock back. A lock that was lost is a result, and not a failure of the run.
func (c *crowd) release(ctx context.Context, l *rowlock.Lock) error {
	err := l.Unlock(ctx)
	if errors.Is(err, rowlock.ErrLost) {
		c.lost.Store(l.Key(), true)
		return nil
	}
	return err
}

func (c *crowd) hasLost(_ context.Context, key string, _ rowlock.Token, _ error) {
	c.lost.Store(key, true)
}

func (c *crowd) lostLocks() (n int) {
	c.lost.Range(func(any, any) bool { n++; return true })
	return n
}

// each calls f for every lock, from a few goroutines.
func (c *crowd) each(f func(n int) error) error {
	var next atomic.Int64
	var g errgroup.Group
	for range c.Helpers {
		g.Go(func() error {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(c.locks) {
					return nil
				}
				if err := f(n); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// watch counts the renewals of a few periods. A lease that was not lost was renewed in each of
// them.
func (c *crowd) watch(ctx context.Context, d *rig.Database, h *Cost, p *rig.Progress) error {
	before, used := c.renewals.Load(), rig.CPU()
	server, err := serverCPU(d)
	if err != nil {
		return err
	}
	began := time.Now()
	for range watched {
		select {
		case <-time.After(c.TTL / 3):
		case <-ctx.Done():
		}
		p.Step()
	}
	took := time.Since(began).Seconds()
	h.Client = (rig.CPU() - used).Seconds() / took
	later, err := serverCPU(d)
	h.Server = (later - server) / took
	h.Renewals = float64(c.renewals.Load()-before) / watched
	h.PerRenewal = float64(h.Locks) / max(1, h.Renewals)
	for _, l := range c.locks {
		if !time.Now().Before(l.Deadline()) {
			c.lost.Store(l.Key(), true)
		}
	}
	return err
}

// serverCPU is the processors' time of the server in seconds, or NaN.
func serverCPU(d *rig.Database) (float64, error) {
	pid := rig.ServerPID(d.Name)
	if pid == 0 {
		return math.NaN(), nil
	}
	used, err := rig.TreeCPU(pid)
	return used.Seconds(), err
}

type sight struct {
	goroutines int
	heap       float64
}

// look waits until the collector has nothing more to find.
func look() sight {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first pass has left to finalizers and pools
	runtime.ReadMemStats(&m)
	return sight{runtime.NumGoroutine(), float64(m.HeapAlloc)}
}
