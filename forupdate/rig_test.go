package forupdate_test

import (
	"database/sql"
	"net/url"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// ttl is far longer than any test: a key that becomes free was released, or its holder is gone.
const ttl = 5 * time.Minute

// ask asks once for key, under an owner of its own.
func ask(tb testing.TB, s *forupdate.Store, key string) lease.Acquired {
	tb.Helper()
	a, err := s.Acquire(tb.Context(), []lease.AcquireRequest{{Key: key, Owner: lease.NewOwner(), TTL: ttl}})
	ok(tb, err)
	return a[0]
}

// hold acquires key, which must be free.
func hold(tb testing.TB, s *forupdate.Store, key string) lease.Lease {
	tb.Helper()
	return holdFor(tb, s, key, ttl)
}

func holdFor(tb testing.TB, s *forupdate.Store, key string, d time.Duration) lease.Lease {
	tb.Helper()
	r := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: d, Note: "test"}
	a, err := s.Acquire(tb.Context(), []lease.AcquireRequest{r})
	ok(tb, err)
	if !a[0].Granted {
		tb.Fatalf("%q is held by %+v, and was to be free", key, a[0].Holder)
	}
	return lease.Lease{Key: key, Owner: r.Owner, Token: a[0].Token}
}

func release(tb testing.TB, s *forupdate.Store, l lease.Lease) {
	tb.Helper()
	_, err := s.Release(tb.Context(), []lease.Lease{l})
	ok(tb, err)
}

func renew(tb testing.TB, s *forupdate.Store, l lease.Lease, d time.Duration) lease.RenewOutcome {
	tb.Helper()
	r, err := s.Renew(tb.Context(), []lease.RenewRequest{{Lease: l, TTL: d}})
	ok(tb, err)
	return r[0].Outcome
}

// deferring returns a pool on e's SQLite file whose transactions take no lock when they begin.
func deferring(tb testing.TB, e *testdb.Env) *sql.DB {
	tb.Helper()
	source, err := url.Parse(e.Source)
	ok(tb, err)
	q := source.Query()
	q.Del("_txlock")
	source.RawQuery = q.Encode()
	db, err := sql.Open(e.Driver, source.String())
	ok(tb, err)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}
