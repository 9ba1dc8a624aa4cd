package paxosbridge_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// lateness carries requests out after their caller has left, as an overloaded server does, and
// refuses releases for a while.
type lateness struct {
	requests, handOvers, releases atomic.Bool
	doubts, departs               atomic.Bool
}

const late = time.Second

func (l *lateness) request(
	ctx context.Context, isLate *atomic.Bool, grant func(context.Context) ([]lease.Acquired, error),
) ([]lease.Acquired, error) {
	if !isLate.Load() {
		return grant(ctx)
	}
	<-ctx.Done()
	time.AfterFunc(late, func() { _, _ = grant(context.Background()) })
	return nil, errors.Join(lease.ErrUnknown, ctx.Err())
}

func (l *lateness) release(
	ctx context.Context, release func() ([]lease.Released, error),
) ([]lease.Released, error) {
	if !l.releases.Load() {
		return release()
	}
	<-ctx.Done()
	return nil, errors.Join(lease.ErrUnknown, ctx.Err())
}

type lateTable struct {
	table
	*lateness
}

func (s lateTable) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	if s.doubts.CompareAndSwap(true, false) {
		time.AfterFunc(late, func() { _, _ = s.table.Acquire(context.Background(), reqs) })
		return []lease.Acquired{{Unknown: true}}, nil
	}
	return s.request(ctx, &s.requests, func(ctx context.Context) ([]lease.Acquired, error) {
		return s.table.Acquire(ctx, reqs)
	})
}

// Depart fails after the mover was granted the key by its second request. The first is late.
func (s lateTable) Depart(ctx context.Context, l lease.Lease, placement int) (int64, bool, error) {
	if s.departs.Load() {
		return 0, false, lease.ErrBusy
	}
	return s.table.Depart(ctx, l, placement)
}

func (s lateTable) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	return s.request(ctx, &s.handOvers, func(ctx context.Context) ([]lease.Acquired, error) {
		return s.table.HandOver(ctx, items)
	})
}

func (s lateTable) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	return s.release(ctx, func() ([]lease.Released, error) { return s.table.Release(ctx, leases) })
}

type lateCluster struct {
	*memcluster.Cluster
	*lateness
}

func (s lateCluster) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return s.request(ctx, &s.requests, func(ctx context.Context) ([]lease.Acquired, error) {
		return s.Cluster.Acquire(ctx, reqs)
	})
}

func (s lateCluster) Seal(ctx context.Context, l lease.Lease) (bool, error) {
	if s.releases.Load() {
		return false, lease.ErrUnknown
	}
	return s.Cluster.Seal(ctx, l)
}

func (s lateCluster) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	return s.release(ctx, func() ([]lease.Released, error) { return s.Cluster.Release(ctx, leases) })
}

// lateRig is a bridge over stores that are late, and its key "k" in the cluster if it is away.
func lateRig(t *testing.T, away bool) (r *rig, b *paxosbridge.Bridge, l *lateness) {
	t.Helper()
	r, l = newRig(t, paxosbridge.Config{}), new(lateness)
	b, err := paxosbridge.New(t.Context(), lateTable{r.table, l}, lateCluster{r.cluster, l}, &paxosbridge.Config{Every: -1})
	r.must(err)
	if away {
		r.must(b.MoveOut(t.Context(), "k", "test"))
	}
	return r, b, l
}

// wantFreeAt wants "k" to be granted.
func (r *rig) wantFreeAt(b *paxosbridge.Bridge) {
	r.Helper()
	if a := r.ask(b, request("k")); !a.Granted {
		r.Errorf("the key was answered %+v", a)
	}
}

// ends closes both bridges within the bubble.
func (r *rig) ends(b *paxosbridge.Bridge) {
	r.Helper()
	r.must(b.Close())
	_ = r.Close()
}

// refusedMove moves "k" from where it is, and wants that to fail.
func (r *rig) refusedMove(b *paxosbridge.Bridge, away bool) {
	r.Helper()
	move := b.MoveOut
	if away {
		move = b.MoveBack
	}
	if err := move(context.Background(), "k", "test"); err == nil {
		r.Fatal("the key has moved")
	}
}

// A request of a mover is carried out after the mover gave up and released. The key waited for the
// mover's lease: twice MoveTimeout, and longer in a cluster that renews leases when it elects.
func TestAKeyDoesNotWaitForAMoverThatIsGrantedLate(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			t.Logf("away %v", away)
			r, b, l := lateRig(t, away)
			l.requests.Store(true)
			r.refusedMove(b, away)
			l.requests.Store(false)
			time.Sleep(late + time.Millisecond) // until the request is carried out
			time.Sleep(time.Second)
			r.wantFreeAt(b)
			r.ends(b)
		})
	}
}

// The mover was granted the key, released it because the move failed, and a copy of its request
// that had no answer is carried out after that.
func TestAKeyDoesNotWaitForAMoverWhoseFirstRequestIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b, l := lateRig(t, false)
		l.doubts.Store(true)
		l.departs.Store(true)
		r.refusedMove(b, false)
		time.Sleep(late + time.Second)
		r.wantFreeAt(b)
		r.ends(b)
	})
}

// The cluster does not answer while a mover gives up. Its lease is released as soon as it does.
func TestAKeyDoesNotWaitForAMoverThatCouldNotRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b, l := lateRig(t, true)
		l.releases.Store(true)
		r.refusedMove(b, true)
		if a := r.ask(b, request("k")); a.Granted {
			t.Fatal("the mover's lease was released")
		}
		l.releases.Store(false)
		time.Sleep(3 * time.Second) // a release that hangs is given up, and tried again
		r.wantFreeAt(b)
		r.ends(b)
	})
}

// A holder hands its key to a mover, which gives up before that is carried out.
func TestAKeyDoesNotWaitForAMoverThatIsHandedItLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b, l := lateRig(t, false)
		held := r.hold(b, "k", 0)
		moved := make(chan error, 1)
		go func() { moved <- b.MoveOut(t.Context(), "k", "test") }()
		time.Sleep(time.Second)
		l.handOvers.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()
		if a, err := b.Release(ctx, []lease.Lease{held}); err != nil || a[0].Err == nil {
			t.Errorf("a hand-over without an answer was answered %+v, %v", a, err)
		}
		if <-moved == nil {
			t.Error("the key has moved")
		}
		l.handOvers.Store(false)
		time.Sleep(late + time.Second)
		r.wantFreeAt(b)
		r.ends(b)
	})
}

// While a mover holds a key, others are refused it.
func TestOtherProcessesHearThatAMoverHasReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b, l := lateRig(t, false)
		l.departs.Store(true)
		var heard atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_ = r.Listen(ctx, func(key string) { heard.Add(int64(len(key))) }) // another process
		}()
		synctest.Wait()
		r.refusedMove(b, false)
		synctest.Wait()
		if heard.Load() == 0 {
			t.Error("a waiter of another process has heard nothing")
		}
		cancel()
		r.ends(b)
	})
}

// A bridge that is closed meanwhile releases the lease before Close returns.
func TestACloseReleasesWhatAMoverIsGrantedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b, l := lateRig(t, true)
		l.releases.Store(true)
		r.refusedMove(b, true)
		l.releases.Store(false)
		r.must(b.Close())
		r.wantFreeAt(r.Bridge)
		_ = r.Close()
	})
}
