package paxosbridge_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/internal/race/bubbles"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

func TestMain(m *testing.M) { bubbles.Main(m) }

// table is a memstore with what a bridge needs besides. Memory has no transactions, so a fence only
// reads.
type table struct{ *memstore.Store }

// Acquire returns the error of a batch of one as the call's own, as a table does.
func (t table) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	answers, err := t.Store.Acquire(ctx, reqs)
	if err == nil && len(answers) == 1 {
		err = answers[0].Err
	}
	return answers, err
}

func (t table) Fence(ctx context.Context, _ lease.Runner, l lease.Lease) error {
	rows, err := t.Inspect(ctx, lease.Filter{Keys: []string{l.Key}})
	if err == nil && (len(rows) != 1 || rows[0].Lease != l) {
		err = lease.ErrFenced
	}
	return err
}

func (t table) ReleaseTx(ctx context.Context, _ lease.Runner, l lease.Lease) error {
	got, err := t.Release(ctx, []lease.Lease{l})
	if err == nil && got[0].Gone {
		err = lease.ErrFenced
	}
	return err
}

// rig is a table, a cluster and bridges between them.
type rig struct {
	testing.TB
	table   table
	cluster *memcluster.Cluster
	*paxosbridge.Bridge
	moved moved // for conformance in the cluster
}

func newRig(tb testing.TB, cfg paxosbridge.Config) *rig {
	tb.Helper()
	r := &rig{TB: tb, table: table{memstore.New()}, cluster: memcluster.New()}
	r.Bridge = r.bridge(tb, cfg)
	return r
}

// bridge is another process.
func (r *rig) bridge(tb testing.TB, cfg paxosbridge.Config) *paxosbridge.Bridge {
	tb.Helper()
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if cfg.Every == 0 {
		cfg.Every = -1
	}
	b, err := paxosbridge.New(context.Background(), r.table, r.cluster, &cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = b.Close() })
	return b
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) wantIs(err, want error) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Fatalf("got %v, want %v", err, want)
	}
}

func request(key string) lease.AcquireRequest {
	return lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: time.Minute, Note: "test"}
}

func (r *rig) ask(s lease.Store, q lease.AcquireRequest) lease.Acquired {
	r.Helper()
	answers, err := s.Acquire(context.Background(), []lease.AcquireRequest{q})
	r.must(err)
	return answers[0]
}

// hold acquires key through s, and wants a grant in epoch.
func (r *rig) hold(s lease.Store, key string, epoch int64) lease.Lease {
	r.Helper()
	q := request(key)
	a := r.ask(s, q)
	if !a.Granted || lease.Epoch(a.Token) != epoch {
		r.Fatalf(
			"%q was answered %+v in epoch %d; want it to be granted in epoch %d", key, a,
			lease.Epoch(a.Token), epoch,
		)
	}
	return lease.Lease{Key: key, Owner: q.Owner, Token: a.Token}
}

func (r *rig) free(s lease.Store, l lease.Lease) {
	r.Helper()
	answers, err := s.Release(context.Background(), []lease.Lease{l})
	r.must(err)
	if answers[0].Gone || answers[0].Err != nil {
		r.Fatalf("the release of %+v was answered %+v", l, answers[0])
	}
}

func (r *rig) renewed(s lease.Store, l lease.Lease, want lease.RenewOutcome) {
	r.Helper()
	answers, err := s.Renew(
		context.Background(), []lease.RenewRequest{{Lease: l, TTL: time.Minute}},
	)
	r.must(err)
	if answers[0].Outcome != want || answers[0].Err != nil {
		r.Fatalf("the renewal of %+v was answered %+v, want %v", l, answers[0], want)
	}
}

func (r *rig) row(key string) lease.Record {
	r.Helper()
	rows, err := r.table.Inspect(context.Background(), lease.Filter{Keys: []string{key}})
	r.must(err)
	if len(rows) == 0 {
		return lease.Record{}
	}
	return rows[0]
}

func (r *rig) record(key string) paxosbridge.Record {
	r.Helper()
	all, err := r.cluster.Records(context.Background(), "", 1000)
	r.must(err)
	for _, one := range all {
		if one.Key == key {
			return one
		}
	}
	return paxosbridge.Record{}
}

// wantAt wants key to be at placement in epoch, and to be granted there.
func (r *rig) wantAt(key string, placement int, epoch int64) {
	r.Helper()
	if row := r.row(key); row.Placement != placement || lease.Epoch(row.Token) != epoch {
		r.Fatalf(
			"the row of %q is %+v in epoch %d; want placement %d and epoch %d", key, row,
			lease.Epoch(row.Token), placement, epoch,
		)
	}
	r.free(r.Bridge, r.hold(r.Bridge, key, epoch))
}
