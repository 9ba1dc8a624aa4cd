package conn_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
)

var (
	errDown     = errors.New("server down")
	errReadOnly = errors.New("read-only")
)

func fails(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// once runs an op and returns its error.
func (r *rig) once(kind conn.Kind, run func(context.Context) error) error {
	o := newOp(kind, body{name: "call", run: run})
	if err := r.Do(context.Background(), o); err != nil {
		return err
	}
	return o.Err
}

// keepCalling has n callers call every 10 ms, as a store that tries again does.
func (r *rig) keepCalling(n int, during time.Duration, run func(context.Context) error) (failed int64) {
	var all sync.WaitGroup
	var count atomic.Int64
	for range n {
		all.Go(func() {
			for began := time.Now(); time.Since(began) < during; time.Sleep(10 * time.Millisecond) {
				if r.once(conn.Acquire, run) != nil {
					count.Add(1)
				}
			}
		})
	}
	all.Wait()
	return count.Load()
}

// breakAll costs every connection its connection, all at once.
func (r *rig) breakAll() {
	var all sync.WaitGroup
	together := make(chan struct{})
	for _, kind := range []conn.Kind{conn.Acquire, conn.Acquire, conn.Renew}[3-r.conns:] {
		all.Go(func() {
			_ = r.once(kind, func(context.Context) error { <-together; return errBroken })
		})
		synctest.Wait()
	}
	close(together)
	all.Wait()
}

// What is dialed does not depend on the number of callers.
func TestAServerThatIsDownIsDialedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, nil)
		r.dialer.failAfter(0, errDown)
		r.breakAll()
		before := r.dialer.dialed.Load()
		r.keepCalling(64, 3*time.Second, nil)
		if n := r.dialer.dialed.Load() - before; n < 60 || n > 300 {
			t.Errorf("%d connections were tried in 3 s, want three in each 40 ms at most", n)
		}
	})
}

func TestAServerThatIsBackIsDialedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, nil)
		r.dialer.failAfter(0, errDown)
		r.breakAll()
		r.keepCalling(8, 3*time.Second, nil)
		r.dialer.failAfter(0, nil)
		began := time.Now()
		for r.once(conn.Acquire, nil) != nil {
			time.Sleep(time.Millisecond)
		}
		// A store tries for 254 ms, give or take a half.
		if took := time.Since(began); took > 60*time.Millisecond {
			t.Errorf("the first op after the outage had to wait for %s", took)
		}
		time.Sleep(time.Second)
		if failed := r.keepCalling(64, time.Second, nil); failed > 0 {
			t.Errorf("%d calls failed after the outage", failed)
		}
	})
}

// One cut connection is no outage: the pauses begin after the second failure, also of an outage
// that comes later.
func TestTheFirstFailureOfAnOutageIsFollowedByATryAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, nil)
		for outage := range 2 {
			r.dialer.failAfter(0, errDown)
			r.breakAll()
			if outage == 1 {
				before := r.dialer.dialed.Load()
				r.keepCalling(1, 20*time.Millisecond, nil)
				if n := r.dialer.dialed.Load() - before; n != 2 {
					t.Errorf("dialed %d times for the first two calls", n)
				}
			}
			r.keepCalling(8, time.Second, nil)
			r.dialer.failAfter(0, nil)
			time.Sleep(time.Second)
			if err := r.once(conn.Acquire, nil); err != nil {
				t.Error(err)
			}
		}
	})
}

// A server that takes no writes accepts every connection and answers every read.
func TestAServerThatTakesNoWritesIsDialedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, func(cfg *conn.Config[body]) {
			cfg.Good = func(err error) bool { return !errors.Is(err, errReadOnly) }
			cfg.ReadOnly = func(err error) bool { return errors.Is(err, errReadOnly) }
		})
		before := r.dialer.dialed.Load()
		var reads sync.WaitGroup
		reads.Go(func() {
			for range 300 {
				_ = r.once(conn.Renew, nil)
				time.Sleep(10 * time.Millisecond)
			}
		})
		r.keepCalling(64, 3*time.Second, fails(errReadOnly))
		reads.Wait()
		if n := r.dialer.dialed.Load() - before; n < 60 || n > 300 {
			t.Errorf("%d connections were made in 3 s, want three in each 40 ms at most", n)
		}
	})
}

// Callers with less time than a connection takes give their turns up, one after the other. Renewals
// do not stand behind them.
func TestARenewalIsNotKeptFromConnectingByCallersInAHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const connecting = 120 * time.Millisecond
		var down atomic.Bool
		r := newRig(t, 3, func(cfg *conn.Config[body]) {
			cfg.Setup = func(ctx context.Context, _ *session) error {
				if down.Load() {
					return errDown
				}
				select {
				case <-time.After(connecting):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		})
		down.Store(true)
		r.breakAll()
		var over atomic.Bool
		var callers sync.WaitGroup
		for range 200 {
			callers.Go(func() {
				for !over.Load() {
					ctx, cancel := context.WithTimeout(context.Background(), connecting/2)
					_ = r.Do(ctx, newOp(conn.Acquire, body{name: "hurry"}))
					cancel()
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		time.Sleep(3 * time.Second)
		down.Store(false)
		began := time.Now()
		for r.once(conn.Renew, nil) != nil && time.Since(began) < 10*time.Second {
			time.Sleep(30 * time.Millisecond)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the renewal got through after %s", took)
		}
		over.Store(true)
		callers.Wait()
	})
}

// A caller that asks whether its own deadline has passed is not misled by one of the set's.
func TestAConnectionThatComesTooLateIsNoDeadlineOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, func(c *conn.Config[body]) { c.Timeout = 50 * time.Millisecond })
		r.wantIs(r.once(conn.Acquire, fails(errBroken)), errBroken)
		r.db.SetMaxOpenConns(1)
		all, err := r.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		never := fails(errors.New("it ran"))
		err = r.once(conn.Acquire, never)
		if r.wantIs(err, adapter.ErrLate); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is a context's, though the caller has none that ends", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		o := newOp(conn.Acquire, body{name: "call", run: never})
		if err := r.Do(ctx, o); err == nil {
			r.wantIs(o.Err, context.DeadlineExceeded)
		} else {
			r.wantIs(err, context.DeadlineExceeded)
		}
	})
}
