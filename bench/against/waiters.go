package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/internal/faultdb"
)

// served is how a crowd that waited for one key was served.
type served struct {
	name, system string
	waiters      int
	done         int64         // how many had the key before patience ended
	took         time.Duration // from the key's release until the last had it and gave it up
	statements   float64       // sent meanwhile for each of them; 0: not counted
	err          error
}

const patience = 30 * time.Second // of a crowd

// crowds has those wait who do so in an order of their own, or claim to serve many.
func (f *field) crowds(ctx context.Context, s settings, p *rig.Progress) (all []*served, err error) {
	for _, c := range f.contenders {
		if !c.wait {
			continue
		}
		p.Say(f.d.Name, fmt.Sprintf("%s, %d wait", c.name, s.waiters))
		serve := serveCrowd
		if c.name == nameUpdate {
			serve = f.serveCounted
		}
		one, err := serve(ctx, c, s)
		if err != nil {
			one.err = err
		}
		all = append(all, one)
	}
	return all, ctx.Err()
}

// serveCounted serves through a client whose statements are counted on their way.
func (f *field) serveCounted(ctx context.Context, c *contender, s settings) (one *served, err error) {
	var sent atomic.Int64
	one = &served{name: c.name, system: c.system, waiters: s.waiters}
	pool, err := faultdb.Open(f.d.Driver, f.d.Source, faultdb.Func(func(op faultdb.Op) faultdb.Fault {
		if op.Executes() {
			sent.Add(1)
		}
		return faultdb.None
	}))
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	client, err := rowlock.Open(pool, f.d.Dialect, config(s.connections, rowlock.Update, false))
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	counted := *c
	counted.contend = ourPair(client)
	one, err = serveWhile(ctx, &counted, s, func() func() float64 {
		before := sent.Load()
		return func() float64 { return float64(sent.Load()-before) / float64(s.waiters) }
	})
	return one, err
}

func serveCrowd(ctx context.Context, c *contender, s settings) (*served, error) {
	return serveWhile(ctx, c, s, func() func() float64 { return func() float64 { return 0 } })
}

// serveWhile has one hold the key until all the others wait for it, and then each have it once.
func serveWhile(ctx context.Context, c *contender, s settings, count func() func() float64) (*served, error) {
	one := &served{name: c.name, system: c.system, waiters: s.waiters}
	if err := c.prepare(ctx, s.waiters+1); err != nil {
		return one, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.settle()+patience)
	defer cancel()
	crowd := &crowd{c: c, key: race.Key(c.key.Series, 99_999, 99_999)}
	release, err := crowd.hold(ctx, s.waiters)
	if err != nil {
		return one, err
	}
	crowd.wait(ctx, s.waiters)
	time.Sleep(s.settle())
	counted, began := count(), time.Now()
	release()
	crowd.wg.Wait()
	one.took, one.done, one.statements = time.Since(began), crowd.guard.visits.Load(), counted()
	return one, errors.Join(crowd.err(), crowd.guard.check())
}

// settle is how long the crowd is given to begin to wait.
func (s settings) settle() time.Duration {
	if s.short {
		return 200 * time.Millisecond
	}
	return 3 * time.Second
}

type crowd struct {
	c      *contender
	key    string
	guard  guard
	wg     sync.WaitGroup
	failed sync.Map // by worker
}

// hold has the key, as a worker beyond the crowd, until release is called.
func (c *crowd) hold(ctx context.Context, worker int) (release func(), err error) {
	has, done := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	c.wg.Go(func() {
		ended <- c.c.contend(ctx, worker, c.key, func() error {
			close(has)
			<-done
			return nil
		})
	})
	select {
	case <-has:
		return func() { close(done) }, nil
	case err := <-ended:
		return nil, fmt.Errorf("nobody had the key to begin with: %w", err)
	}
}

func (c *crowd) wait(ctx context.Context, n int) {
	for worker := range n {
		c.wg.Go(func() {
			if err := c.c.contend(ctx, worker, c.key, c.guard.visit); err != nil {
				c.failed.Store(worker, err)
			}
		})
	}
}

// err is one error of those who failed, and how many they are.
func (c *crowd) err() (err error) {
	n := 0
	c.failed.Range(func(_, value any) bool { n++; err = value.(error); return true })
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d were not served: %w", n, err)
}
