package paxosbridge_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// eraTable is a table in a new era if era is above admitted. In one it grants the first of several
// keys all the same: that request came over a connection of the era before.
type eraTable struct {
	table
	era, admitted *atomic.Int64
	doubts        *atomic.Bool // the first of several had a try without an answer
}

func newEraTable(r *rig) eraTable {
	return eraTable{r.table, new(atomic.Int64), new(atomic.Int64), new(atomic.Bool)}
}

func (e eraTable) Era() lease.Token { return lease.Token(e.era.Load()) }

func (e eraTable) HoldEras() (admit func(lease.Token), free func()) {
	return func(start lease.Token) { e.admitted.Store(int64(start)) }, func() {}
}

func (eraTable) MayDepart(context.Context, string) error { return nil }

func (e eraTable) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	if e.era.Load() <= e.admitted.Load() {
		return e.table.Acquire(ctx, reqs)
	}
	if len(reqs) == 1 {
		return nil, adapter.ErrNewEra
	}
	answers := make([]lease.Acquired, len(reqs))
	for i := range answers {
		answers[i].Err = adapter.ErrNewEra
	}
	if e.doubts.Load() {
		answers[0] = lease.Acquired{Unknown: true}
		return answers, nil
	}
	first, err := e.table.Acquire(ctx, reqs[:1])
	answers[0] = first[0]
	return answers, err
}

func eraBridge(t *testing.T, cluster func(*memcluster.Cluster) paxosbridge.Cluster) (*rig, *paxosbridge.Bridge, eraTable) {
	t.Helper()
	r := newRig(t, paxosbridge.Config{})
	e := newEraTable(r)
	b, err := paxosbridge.New(t.Context(), e, cluster(r.cluster), &paxosbridge.Config{Every: -1})
	r.must(err)
	return r, b, e
}

func asItIs(c *memcluster.Cluster) paxosbridge.Cluster { return c }

// The caller would release nothing, and the key would stay locked for a TTL.
func TestAnAuditThatFailsHidesNoGrantOfItsBatch(t *testing.T) {
	r, b, e := eraBridge(t, asItIs)
	defer b.Close()
	e.era.Store(1)
	r.cluster.Fail(errDown)
	answers, err := b.Acquire(t.Context(), []lease.AcquireRequest{request("a"), request("b")})
	if err != nil || !answers[0].Granted {
		t.Errorf("a key that is held was answered %+v, %v", answers, err)
	} else {
		r.wantIs(answers[1].Err, lease.ErrBusy)
		r.wantIs(answers[1].Err, errDown)
	}
	_, err = b.Acquire(t.Context(), []lease.AcquireRequest{request("c")})
	r.wantIs(err, lease.ErrBusy)
}

// The request is repeated after the audit, and its first copy may still be carried out.
func TestADoubtOutlastsAnAudit(t *testing.T) {
	r, b, e := eraBridge(t, asItIs)
	defer b.Close()
	r.hold(r.table, "a", 0)
	e.doubts.Store(true)
	e.era.Store(1)
	answers, err := b.Acquire(t.Context(), []lease.AcquireRequest{request("a"), request("b")})
	if r.must(err); !answers[0].Unknown || answers[0].Granted || !answers[1].Granted {
		t.Errorf("answered %+v", answers)
	}
}

// unsureCluster answers the first request, of which a copy may be carried out later, as one that
// came to a record of an older epoch.
type unsureCluster struct {
	*memcluster.Cluster
	doubts *atomic.Bool
	joined bool // the error says so, or only the answer
}

func (d unsureCluster) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	if !d.doubts.CompareAndSwap(true, false) {
		return d.Cluster.Acquire(ctx, reqs)
	}
	err := error(&paxosbridge.RecordError{Record: paxosbridge.Record{Key: reqs[0].Key}, Asked: reqs[0].Epoch})
	if d.joined {
		err = errors.Join(lease.ErrUnknown, err)
	}
	return []lease.Acquired{{Unknown: true, Err: err}}, nil
}

// No process would release what the first copy is granted.
func TestADoubtOutlastsTheWayToTheKeysPlacement(t *testing.T) {
	for _, joined := range []bool{false, true} {
		r := newRig(t, paxosbridge.Config{})
		d := unsureCluster{r.cluster, new(atomic.Bool), joined}
		b, err := paxosbridge.New(t.Context(), r.table, d, &paxosbridge.Config{Every: -1})
		r.must(err)
		defer b.Close()
		r.must(b.MoveOut(t.Context(), "k", "test"))
		l := r.hold(r.Bridge, "k", 1)
		d.doubts.Store(true)
		if a := r.ask(b, request("k")); !a.Unknown || a.Granted || a.Err != nil {
			t.Errorf("while the key is held: %+v", a)
		}
		r.free(r.Bridge, l)
		d.doubts.Store(true)
		if a := r.ask(b, request("k")); !a.Unknown || !a.Granted {
			t.Errorf("the free key: %+v", a)
		}
	}
}

// stuckCluster lists no records before ctx ends.
type stuckCluster struct {
	*memcluster.Cluster
	stuck, ended *atomic.Bool
}

func (s stuckCluster) Records(ctx context.Context, after string, limit int) ([]paxosbridge.Record, error) {
	if s.stuck.Load() {
		<-ctx.Done()
		time.Sleep(time.Millisecond)
		s.ended.Store(true)
		return nil, ctx.Err()
	}
	return s.Cluster.Records(ctx, after, limit)
}

// Each page of an audit has a bound of the bridge's.
func TestAnAuditThatIsLateIsNoDeadlineOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := new(atomic.Bool)
		r, b, e := eraBridge(t, func(c *memcluster.Cluster) paxosbridge.Cluster {
			return stuckCluster{c, stuck, new(atomic.Bool)}
		})
		stuck.Store(true)
		e.era.Store(1)
		_, err := b.Acquire(t.Context(), []lease.AcquireRequest{request("k")})
		if r.wantIs(err, lease.ErrBusy); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller has no deadline: %v", err)
		}
		r.must(b.Close())
		_ = r.Close()
	})
}

// The audit of an era outlives the request that began it, and read the stores after Close, when
// its owner may have closed them too.
func TestCloseEndsTheAuditOfAnEra(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, ended := new(atomic.Bool), new(atomic.Bool)
		r, b, e := eraBridge(t, func(c *memcluster.Cluster) paxosbridge.Cluster {
			return stuckCluster{c, stuck, ended}
		})
		stuck.Store(true)
		e.era.Store(1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.Acquire(ctx, []lease.AcquireRequest{request("k")})
		r.wantIs(err, context.DeadlineExceeded)
		if ended.Load() {
			t.Fatal("the audit ended with its caller")
		}
		began := time.Now()
		if r.must(b.Close()); !ended.Load() || time.Since(began) > time.Second {
			t.Errorf("Close took %v, and the audit had ended: %v", time.Since(began), ended.Load())
		}
		_, err = b.Acquire(t.Context(), []lease.AcquireRequest{request("k")})
		r.wantIs(err, lease.ErrClosed)
		_ = r.Close()
	})
}
