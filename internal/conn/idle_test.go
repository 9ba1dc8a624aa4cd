package conn_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
)

// wantOpen compares what is open: none of it went back to the pool.
func (r *rig) wantOpen(want int, when string) {
	r.Helper()
	synctest.Wait()
	if s := r.db.Stats(); s.InUse != want || s.OpenConnections != want {
		r.Errorf("%s: %d connections are open, %d of them in use, want %d", when, s.OpenConnections, s.InUse, want)
	}
	if m := r.Measure(); m.Connections != int64(want) {
		r.Errorf("%s: Measure reports %d connections, want %d", when, m.Connections, want)
	}
}

// aged is a set whose connections have run nothing for longer than they stay open.
func aged(t *testing.T, conns int, change func(*conn.Config[body])) *rig {
	t.Helper()
	r := newRig(t, conns, change)
	time.Sleep(time.Minute + time.Second)
	return r
}

func TestOneConnectionStaysOpenThatRunsNothing(t *testing.T) {
	for conns := 1; conns <= 4; conns++ {
		synctest.Test(t, func(t *testing.T) {
			r := aged(t, conns, nil)
			r.wantOpen(1, "after a minute")
			time.Sleep(time.Hour)
			r.wantOpen(1, "after an hour")
			dialed := r.dialer.dialed.Load()
			r.do(quick(conn.Acquire, "first"))
			r.do(quick(conn.Release, "last"))
			if n := r.dialer.dialed.Load() - dialed; n != 0 {
				t.Errorf("of %d: %d connections were dialed for the first op after an hour", conns, n)
			}
		})
	}
}

func TestAConnectionThatIsUsedStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, nil)
		long := r.occupy(conn.Acquire, "long")
		for range 20 {
			time.Sleep(25 * time.Second)
			r.do(quick(conn.Acquire, "now and then"))
		}
		r.wantOpen(2, "with two in use")
		close(long.letGo)
		synctest.Wait()
		time.Sleep(time.Minute)
		r.wantOpen(1, "after both")
	})
}

// In a pool with a limit the application may have every other connection when a renewal is due.
func TestTheKeeperStaysOpenInAPoolWithALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, nil)
		r.db.SetMaxOpenConns(4)
		time.Sleep(time.Hour)
		r.wantOpen(2, "after an hour")
		for range 2 {
			if _, err := r.db.Conn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		hangs := r.occupy(conn.Acquire, "hangs")
		r.do(quick(conn.Renew, "renewal"))
		close(hangs.letGo)
	})
}

// A renewal must not wait for a dial, nor for what acquires.
func TestTheKeeperIsOpenWhileThereAreRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := aged(t, 3, nil)
		for i := range 60 {
			if i > 30 {
				r.do(quick(conn.Acquire, "another"))
			}
			r.do(quick(conn.Renew, "renewal"))
			r.wantOpen(2, "while something is held")
			time.Sleep(10 * time.Second)
		}
		r.dialer.failAfter(0, errDown)
		hangs := r.occupy(conn.Acquire, "hangs")
		renewal := quick(conn.Renew, "renewal")
		r.do(renewal)
		r.wantIs(renewal.Err, nil)
		close(hangs.letGo)
		synctest.Wait()
		time.Sleep(time.Hour)
		r.wantOpen(1, "when nothing is held")
	})
}

func TestConnectionsOpenUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := aged(t, 3, nil)
		first := r.occupy(conn.Acquire, "first")
		second := r.occupy(conn.Acquire, "second")
		r.wantOpen(2, "with two acquires")
		third := r.occupy(conn.Renew, "third")
		r.wantOpen(3, "with a renewal besides")
		for _, h := range []*held{first, second, third} {
			close(h.letGo)
		}
	})
}

// What waits for a connection that is busy does not wait for the application instead, which may
// have all others and wait for this very op.
func TestNoOpWaitsForADialThatHangsWhileAnotherConnectionIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, nil)
		r.db.SetMaxOpenConns(4)
		time.Sleep(time.Hour)
		for range 2 {
			if _, err := r.db.Conn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		first := r.occupy(conn.Acquire, "first")
		began := time.Now()
		var others sync.WaitGroup
		for range 3 {
			others.Go(func() {
				o := quick(conn.Acquire, "other")
				r.do(o)
				r.wantIs(o.Err, nil)
			})
		}
		synctest.Wait()
		close(first.letGo)
		others.Wait()
		if took := time.Since(began); took > 0 {
			t.Errorf("the others waited for %s", took)
		}
	})
}

func TestCloseWaitsForNoDialThatNoOpNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		r := aged(t, 3, func(c *conn.Config[body]) {
			c.Setup = func(ctx context.Context, _ *session) error {
				if hangs.Load() {
					<-ctx.Done()
				}
				return ctx.Err()
			}
		})
		hangs.Store(true)
		r.do(quick(conn.Renew, "has the keeper dialed"))
		synctest.Wait()
		began := time.Now()
		r.Close()
		if took := time.Since(began); took > 0 {
			t.Errorf("Close waited for %s", took)
		}
	})
}

// A network or a server may have ended a connection in silence while nothing ran on it: what is
// sent there is lost, with an unknown outcome, after the op's whole time.
func TestAConnectionThatRanNothingForLongIsProvedFirst(t *testing.T) {
	for _, kind := range []conn.Kind{conn.Acquire, conn.Release, conn.Renew} {
		for name, call := range map[string]func(*rig, *op){
			"by its caller": (*rig).do,
			"by itself":     func(r *rig, o *op) { r.Go(o); r.do(o) },
		} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 3, nil)
				r.do(quick(kind, "before"))
				time.Sleep(time.Minute + time.Second)
				r.dialer.cut.Store(true)
				began, o := time.Now(), quick(kind, "after")
				call(r, o)
				r.wantIs(o.Err, nil)
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("%s: the op took %s", name, took)
				}
				r.wantOrder("before", "after")
				if r.on("before") == r.on("after") || r.setups.Load() < 4 {
					t.Errorf("%s: %d sessions were set up, want another for the op", name, r.setups.Load())
				}
				asked := r.dialer.pings.Load()
				for range 10 {
					r.do(quick(kind, "at once"))
				}
				if n := r.dialer.pings.Load() - asked; n > 0 {
					t.Errorf("%s: a connection that was just used was proved %d times", name, n)
				}
			})
		}
	}
}

// With no connection open an op's dial is its caller's, who can leave it with nothing sent.
func TestADialThatItsCallerLeavesSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		r := newRig(t, 1, func(c *conn.Config[body]) {
			c.Setup = func(ctx context.Context, _ *session) error {
				if hangs.Load() {
					<-ctx.Done()
				}
				return ctx.Err()
			}
		})
		r.do(newOp(conn.Acquire, body{name: "breaks", run: fails(errBroken)}))
		hangs.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		o := quick(conn.Acquire, "leaves")
		r.wantIs(r.Do(ctx, o), nil)
		if !errors.As(o.Err, new(conn.NotSent)) {
			t.Errorf("%v is not marked as not sent", o.Err)
		}
		r.wantOrder("breaks")
	})
}

func TestAProofThatItsCallerLeavesSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := aged(t, 3, nil)
		r.dialer.cut.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		o := quick(conn.Acquire, "hurry")
		r.wantIs(r.Do(ctx, o), nil)
		if !errors.As(o.Err, new(conn.NotSent)) {
			t.Errorf("%v is not marked as not sent", o.Err)
		}
		r.wantOrder()
	})
}

// Connections that open and close all the time lose no op, run none twice and leave nothing.
func TestNoOpIsLostWithAConnectionThatCloses(t *testing.T) {
	r := newRig(t, 3, func(c *conn.Config[body]) {
		c.Merge, c.Gather, c.Idle = 8, 4, 200*time.Microsecond
	})
	var ran atomic.Int64
	var all sync.WaitGroup
	const callers, each = 8, 400
	for i := range callers {
		all.Go(func() {
			for j := range each {
				o := newOp(conn.Kind((i+j)%3), body{name: fmt.Sprint(i, ".", j), run: func(context.Context) error {
					ran.Add(1)
					return nil
				}})
				if j%8 == 0 {
					o.Alone = true
				}
				if j%16 == 0 {
					time.Sleep(time.Duration(i) * 100 * time.Microsecond) // apart, so that some are idle
				}
				r.do(o)
				r.wantIs(o.Err, nil)
			}
		})
	}
	all.Wait()
	if n := ran.Load(); n != callers*each {
		t.Errorf("%d ops ran, want %d", n, callers*each)
	}
	r.Close()
	opened := r.dialer.opened.Load()
	t.Logf("%d connections were opened", opened)
	wantConnections(t, r, opened)
}
