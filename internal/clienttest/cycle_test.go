package clienttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// bound is within what a cycle is broken after its last call began to wait. Virtual time has no
// slow statements: what a real server needs on top is TTL/10 at most.
const bound = 2 * time.Second

// ring has n clients, each of which holds a key and then waits for the next one's, one second after
// the one before it. lock waits for a key.
func ring(t *testing.T, clients []*rowlock.Client,
	lock func(ctx context.Context, c *rowlock.Client, key string) (unlock func(), err error),
) {
	n := len(clients)
	key := func(i int) string { return fmt.Sprintf("k%d", i%n) }
	var begun [20]time.Time
	var broken atomic.Int32
	end := make(chan struct{})
	var held []*rowlock.Lock
	for i, c := range clients {
		held = append(held, Take(t, c, key(i)))
	}
	for i, c := range clients {
		l := held[i]
		go func() {
			defer func() { end <- struct{}{} }()
			time.Sleep(time.Duration(i) * time.Second)
			begun[i] = time.Now()
			unlock, err := lock(l.Context(), c, key(i+1))
			var d *rowlock.DeadlockError
			if errors.As(err, &d) {
				broken.Add(1)
				wantCycle(t, d, n, i)
				if took := time.Since(begun[n-1]); i != n-1 || took > bound {
					t.Errorf("call %d of %d was ended %s after the last began", i, n, took)
				}
			} else if err != nil {
				t.Errorf("call %d: %v", i, err)
			}
			if unlock != nil {
				unlock()
			}
			Unlock(t, l)
		}()
	}
	for range clients {
		<-end
	}
	if broken.Load() != 1 {
		t.Errorf("%d calls of a cycle of %d were ended", broken.Load(), n)
	}
}

// wantCycle wants the whole cycle, in its order.
func wantCycle(t *testing.T, d *rowlock.DeadlockError, n, first int) {
	t.Helper()
	if len(d.Cycle) != n || d.Key != fmt.Sprintf("k%d", (first+1)%n) {
		t.Errorf("a cycle of %d is told as %+v", n, d)
		return
	}
	for i, l := range d.Cycle {
		if l.Key != fmt.Sprintf("k%d", (first+1+i)%n) || l.Token == 0 || l.Waited < time.Second {
			t.Errorf("wait %d of the cycle is %+v", i, l)
		}
		if !strings.Contains(d.Error(), fmt.Sprintf("%q", l.Key)) {
			t.Errorf("%q does not name %q", d, l.Key)
		}
	}
}

func TestTheCallThatBeganLastEndsACycle(t *testing.T) {
	one := func(ctx context.Context, c *rowlock.Client, key string) (func(), error) {
		l, err := c.Lock(ctx, key)
		if err != nil {
			return nil, err
		}
		return func() { Unlock(t, l) }, nil
	}
	together := func(ctx context.Context, c *rowlock.Client, key string) (func(), error) {
		ls, err := c.LockAll(ctx, []string{"a" + key, key})
		if err != nil {
			return nil, err
		}
		return func() { _ = ls.Unlock(ctx) }, nil
	}
	reads := func(ctx context.Context, c *rowlock.Client, key string) (func(), error) {
		ls, err := c.RLockAll(ctx, []string{"readers", key})
		if err != nil {
			return nil, err
		}
		return func() { _ = ls.Unlock(ctx) }, nil
	}
	for _, fair := range []bool{false, true} {
		for _, n := range []int{2, 3, 10} {
			for name, lock := range map[string]func(context.Context, *rowlock.Client, string) (func(),
				error){"Lock": one, "LockAll": together, "RLockAll": reads} {
				t.Run(fmt.Sprintf("%s of %d, fair %v", name, n, fair), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := memstore.New()
						var clients []*rowlock.Client
						for range n {
							clients = append(clients, Client(t, s, &rowlock.Config{
								Fair: fair, Reaper: rowlock.ReaperConfig{Off: true},
							}))
						}
						ring(t, clients, lock)
					})
				})
			}
		}
	}
}

// B waits for a writer's key, and would share another with A, who waits for B. That is no cycle.
func TestACallIsNotEndedForAKeyThatItWouldShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		a, b, w := Client(t, s, nil), Client(t, s, nil), Client(t, s, nil)
		writer, own := Take(t, w, "written"), Take(t, b, "b")
		shared, err := a.RLock(t.Context(), "shared")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 2)
		go func() {
			l, err := a.Lock(shared.Context(), "b")
			if err == nil {
				Unlock(t, l)
			}
			ended <- err
		}()
		time.Sleep(time.Second)
		go func() {
			ls, err := b.RLockAll(own.Context(), []string{"shared", "written"})
			if err == nil {
				err = ls.Unlock(t.Context())
			}
			Unlock(t, own)
			ended <- err
		}()
		time.Sleep(20 * time.Second)
		Unlock(t, writer)
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		Unlock(t, shared)
	})
}

// A record that is carried out after its call has ended is part of no cycle.
func TestALateRecordOfAWaitThatIsOverEndsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		way := &frail{Store: s, lag: 1500 * time.Millisecond, job: new(sync.WaitGroup)}
		gone, stays := Client(t, way, nil), Client(t, s, nil)
		h, k := Take(t, gone, "h"), Take(t, stays, "k")
		brief, cancel := context.WithTimeout(h.Context(), 1200*time.Millisecond)
		defer cancel()
		_, err := gone.Lock(brief, "k") // recorded as waiting from 2.5 s on
		WantIs(t, "a call that gives up", err, context.DeadlineExceeded, rowlock.ErrHeld)
		time.Sleep(400 * time.Millisecond)
		long, cancel := context.WithTimeout(k.Context(), 3*time.Second)
		defer cancel()
		_, err = stays.Lock(long, "h") // began later than the other seems to have
		WantIs(t, "the call that waits", err, context.DeadlineExceeded)
		if errors.Is(err, rowlock.ErrDeadlock) {
			t.Errorf("it was ended: %v", err)
		}
		way.job.Wait()
		Unlock(t, h)
		Unlock(t, k)
	})
}

// records knows which chains have records, and fails some removals of them.
type records struct {
	*memstore.Store
	mu       sync.Mutex
	chains   map[lease.Owner]bool
	failures int
	most     int    // chains at a time
	process  func() // called once, when a process has recorded itself
}

func (g *records) Record(
	ctx context.Context, by lease.Party, chains []lease.Caller, life time.Duration,
) error {
	g.mu.Lock()
	for _, c := range chains {
		g.chains[c.ID] = true
	}
	g.most = max(g.most, len(g.chains))
	then := g.process
	if by.Process {
		g.process = nil
	}
	g.mu.Unlock()
	err := g.Store.Record(ctx, by, chains, life)
	if by.Process && then != nil {
		then()
	}
	return err
}

func (g *records) Erase(ctx context.Context, chains []lease.Caller) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failures--; g.failures >= 0 {
		return fmt.Errorf("%w: busy", lease.ErrBusy)
	}
	for _, c := range chains {
		delete(g.chains, c.ID)
	}
	return g.Store.Erase(ctx, chains)
}

// A wait that is over leaves no record behind: neither the call's, nor, once it has waited
// suspiciously long, the process's. The database may be busy when they are removed.
func TestAWaitThatIsOverLeavesNoRecord(t *testing.T) {
	for _, waited := range []time.Duration{1500, 8000, 21000} {
		waited *= time.Millisecond
		t.Run(waited.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				way := &records{Store: s, chains: make(map[lease.Owner]bool)}
				waits, holds := Client(t, way, nil), Client(t, s, nil)
				mine, k := Take(t, waits, "h"), Take(t, holds, "k")
				time.AfterFunc(waited, func() {
					way.mu.Lock()
					way.failures = 3
					way.mu.Unlock()
					Unlock(t, k)
				})
				l, err := waits.Lock(mine.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				Unlock(t, l)
				Unlock(t, mine)
				time.Sleep(10 * time.Second)
				way.mu.Lock()
				defer way.mu.Unlock()
				if way.most == 0 || len(way.chains) > 0 {
					t.Errorf("%d chains of %d are still recorded", len(way.chains), way.most)
				}
			})
		})
	}
}

// The wait is over before the process knows that its record was written.
func TestAWaitThatEndsWhileItIsRecordedLeavesNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		way := &records{Store: s, chains: make(map[lease.Owner]bool)}
		waits, holds := Client(t, way, nil), Client(t, s, nil)
		mine, k := Take(t, waits, "h"), Take(t, holds, "k")
		waiting := Wait(t, waits, "k")
		way.mu.Lock()
		way.process = func() {
			Unlock(t, k)
			next := <-waiting
			WantIs(t, "the waiter", next.Err)
			Unlock(t, next.Lock)
		}
		way.mu.Unlock()
		time.Sleep(time.Minute)
		Unlock(t, mine)
		way.mu.Lock()
		defer way.mu.Unlock()
		if way.most == 0 || way.process != nil || len(way.chains) > 0 {
			t.Errorf("%d chains of %d are still recorded", len(way.chains), way.most)
		}
	})
}
