package table_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// ttl is far longer than any test: a key that becomes free was released, and did not
	// expire.
	ttl = 5 * time.Minute
	// patience bounds what must come to an end.
	patience = 20 * time.Second
)

// rig is one database seen through two stores: one whose connections can be broken, and one whose
// cannot.
type rig struct {
	*testdb.Env
	store  *table.Store
	clean  *table.Store
	pool   *sql.DB // the store's
	faults *faultdb.Switch
	log    *faultdb.Log
}

func newRig(tb testing.TB, e *testdb.Env, strategy adapter.Strategy, connections int) *rig {
	tb.Helper()
	e.OnlyReleasesRelax(tb)
	r := &rig{Env: e, faults: &faultdb.Switch{}, log: &faultdb.Log{}}
	db, err := faultdb.Open(e.Driver, e.Source, faultdb.Any(r.log, r.faults))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	if n := e.Dialect.Connections(); n > 0 {
		connections = min(connections, n)
	}
	r.pool = db
	r.store = r.open(tb, db, table.Options{Strategy: strategy, Connections: connections, Timeout: 5 * time.Second})
	r.clean = r.open(tb, e.DB, table.Options{Strategy: strategy, Connections: cmp.Or(e.Dialect.Connections(), 2), Timeout: 5 * time.Second})
	return r
}

func (r *rig) open(tb testing.TB, db *sql.DB, o table.Options) *table.Store {
	tb.Helper()
	o.Relax = true // as a client's is, unless it is told otherwise
	s, _, err := table.Open(tb.Context(), db, r.Dialect, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// recycle has the store's pinned connection begin anew, so that the next call prepares its
// statements again. It does so with an Inspect, or with a Release where that is what is to be
// prepared again.
func (r *rig) recycle(tb testing.TB, with string) {
	tb.Helper()
	r.faults.Set(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Nth(1, faultdb.FailBeforeSend())))
	defer r.faults.Set(nil)
	var err error
	if with == "release" {
		_, err = r.store.Release(tb.Context(), []lease.Lease{{Key: "nobody's", Owner: lease.NewOwner()}})
	} else {
		_, err = r.store.Inspect(tb.Context(), lease.Filter{Keys: []string{"nobody's"}})
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// row is a key's row; the zero Record if there is none.
func (r *rig) row(tb testing.TB, key string) lease.Record {
	tb.Helper()
	found, err := r.clean.Inspect(tb.Context(), lease.Filter{Keys: []string{key}})
	if err != nil {
		tb.Fatal(err)
	}
	if len(found) == 0 {
		return lease.Record{}
	}
	return found[0]
}

func (r *rig) floor(tb testing.TB, key string) (floor lease.Token) {
	tb.Helper()
	err := r.DB.QueryRowContext(tb.Context(), r.SQL(`SELECT floor FROM {rowlock_floor} WHERE bucket = ?`), lease.Bucket(key)).Scan(&floor)
	if err != nil {
		tb.Fatal(err)
	}
	return floor
}

// acquire asks s once for key, under an owner of its own.
func acquire(tb testing.TB, s *table.Store, key string) (lease.Lease, lease.Acquired) {
	tb.Helper()
	req := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl, Note: "test"}
	a, err := ask(tb.Context(), s, req)
	if err != nil {
		tb.Fatal(err)
	}
	return lease.Lease{Key: key, Owner: req.Owner, Token: a.Token}, a
}

func ask(ctx context.Context, s *table.Store, req lease.AcquireRequest) (lease.Acquired, error) {
	answers, err := s.Acquire(ctx, []lease.AcquireRequest{req})
	return answers[0], err
}

// hold acquires key, which must be free.
func hold(tb testing.TB, s *table.Store, key string) lease.Lease {
	tb.Helper()
	l, a := acquire(tb, s, key)
	if !a.Granted {
		tb.Fatalf("%q is held by %+v, and was to be free", key, a.Holder)
	}
	return l
}

func release(tb testing.TB, s *table.Store, l lease.Lease) lease.Released {
	tb.Helper()
	answers, err := s.Release(tb.Context(), []lease.Lease{l})
	if err != nil {
		tb.Fatal(err)
	}
	return answers[0]
}

func wantIs(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("got error %v, want %v", err, target)
		}
	}
}

func wantNot(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			tb.Errorf("got error %v, which is %v", err, target)
		}
	}
}
