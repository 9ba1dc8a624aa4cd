package wlock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock"
	"github.com/rowlockdb/rowlock/wlock/internal/frame"
	"github.com/rowlockdb/rowlock/wlock/internal/wlocktest"
)

func always(b *bed, of frame.Type, fault wlocktest.Fault) {
	b.n.Fault(func(q *frame.Request) wlocktest.Fault {
		if q.Type == of {
			return fault
		}
		return wlocktest.None
	})
}

// Patience is no deadline of the caller's. Its own is told, also if it ends between two tries.
func TestADeadlineThatIsToldIsTheCallers(t *testing.T) {
	inBubble(t, func(b *bed) {
		for _, fault := range []wlocktest.Fault{wlocktest.Hold, wlocktest.Fail} {
			always(b, frame.Acquire, fault)
			_, err := b.s.Acquire(b.Context(), []lease.AcquireRequest{asks()})
			if !errors.Is(err, lease.ErrUnknown) || errors.Is(err, context.DeadlineExceeded) {
				b.Errorf("without a deadline: %v", err)
			}
			ctx, cancel := context.WithTimeout(b.Context(), time.Second)
			_, err = b.s.Acquire(ctx, []lease.AcquireRequest{asks()})
			if cancel(); !errors.Is(err, lease.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
				b.Errorf("with a deadline: %v", err)
			}
		}
		b.n.Let()
	})
}

// A registry that accepts and is silent gives no reason.
func TestASilentRegistryIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := wlock.Config{Registry: []string{"r:1"}, Cluster: cluster}
		cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
			ours, _ := net.Pipe()
			return ours, nil
		}
		_, err := wlock.New(t.Context(), cfg)
		if !errors.Is(err, lease.ErrBusy) || errors.Is(err, context.DeadlineExceeded) ||
			strings.Contains(err.Error(), "%!") {
			t.Errorf("after Patience: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := wlock.New(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) ||
			strings.Contains(err.Error(), "%!") {
			t.Errorf("with a deadline: %v", err)
		}
	})
}

// The caller that dials has little time. Others would have asked around a healthy server for a
// second.
func TestACallerThatLeavesWhileItDialsShunsNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := wlocktest.New(wlocktest.Options{Nodes: 1, Groups: 2}, cluster)
		defer c.Close()
		cfg := config(c)
		cfg.Groups = 2
		var slow atomic.Bool
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != c.Address && slow.CompareAndSwap(true, false) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return c.Dial(ctx, network, address)
		}
		s := open(t, cfg)
		defer s.Close()
		slow.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := s.Acquire(ctx, []lease.AcquireRequest{asks()}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		began := time.Now()
		if a, err := s.Acquire(t.Context(), []lease.AcquireRequest{asks()}); err != nil || !a[0].Granted ||
			time.Since(began) > 100*time.Millisecond {
			t.Errorf("after %v: %+v, %v", time.Since(began), a, err)
		}
	})
}

// It stays in the server's queue, which may grant it the lock for its TTL.
func TestAWaiterOfAClosedClientIsUnknown(t *testing.T) {
	three(t, func(t *testing.T, _ *wlocktest.Cluster, cfg wlock.Config) {
		holder, waiter := client(t, cfg), client(t, cfg)
		defer holder.Close()
		a := wlock.Ask{Lock: wlock.Lock{Key: "k", Owner: lease.NewOwner()}, TTL: time.Minute}
		if _, err := holder.TryLock(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			a := a
			a.Owner = lease.NewOwner()
			_, err := waiter.WaitLock(t.Context(), a)
			done <- err
		}()
		synctest.Wait()
		_ = waiter.Close()
		if err := <-done; !errors.Is(err, lease.ErrUnknown) || !errors.Is(err, lease.ErrClosed) {
			t.Error(err)
		}
	})
}

// A try had no answer, and the next one was refused. The first may be carried out when the key is
// free: then its caller alone releases it.
func TestARefusalAfterATryWithoutAnAnswerIsUnknown(t *testing.T) {
	inBubble(t, func(b *bed) {
		held := b.acquire(b.other, asks())
		b.faults(frame.Acquire, wlocktest.LoseBefore)
		if a := b.acquire(b.s, asks()); !held.Granted || a.Granted || !a.Unknown {
			b.Errorf("%+v, want it to be unknown", a)
		}
		if a := b.acquire(b.s, asks()); a.Granted || a.Unknown {
			b.Errorf("%+v, want a refusal", a)
		}
	})
}
