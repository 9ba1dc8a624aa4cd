package upgrade_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
)

const (
	// ever is longer than a version is kept: what is held in a file is held when it is read.
	ever           = 50 * 365 * 24 * time.Hour
	identity, note = "host 7/4711/orders", "café ☕"
	stored         = identity + "\t" + note
	placement      = 1 // of the cluster that the key "moved" is in
)

// owner is always the same for one name, so that a test knows it years later.
func owner(name string) lease.Owner {
	sum := sha256.Sum256([]byte(name))
	return lease.Owner(sum[:16])
}

// longest is the longest key.
var longest = strings.Repeat("k", lease.MaxKey)

// writer fills tables through the stores of this version.
type writer struct {
	*testing.T
	*testdb.Env
	store *table.Store
	locks *forupdate.Store // nil on SQLite
	once  *once.Once
}

// newWriter opens all stores. Each rehearses on keys of its own, which raises some floors: they
// begin at 0 again.
func newWriter(t *testing.T, e *testdb.Env) *writer {
	t.Helper()
	w := &writer{T: t, Env: e, store: openStore(t, e)}
	var err error
	if e.Name != "sqlite" {
		w.locks, err = forupdate.New(e.DB, e.Dialect, forupdate.Connections(1))
		w.must(err)
		t.Cleanup(func() { _ = w.locks.Close() })
	}
	w.once = openOnce(t, e)
	e.Exec(t, `UPDATE {rowlock_floor} SET floor = 0`)
	e.Exec(t, `DELETE FROM {rowlock}`)
	return w
}

func openStore(t *testing.T, e *testdb.Env) *table.Store {
	t.Helper()
	return openStoreWith(t, e, e.Dialect)
}

func openStoreWith(t *testing.T, e *testdb.Env, d dialect.Dialect) *table.Store {
	t.Helper()
	s, _, err := table.Open(t.Context(), e.DB, sqlstore.Of(d), table.Options{
		Connections: cmp.Or(e.Dialect.Connections(), 2), Timeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openOnce(t *testing.T, e *testdb.Env) *once.Once {
	t.Helper()
	o, err := once.New(e.DB, e.Dialect, &once.Config{Keep: ever, Reap: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

func (w *writer) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// hold acquires a key, which must be free, for the owner of its name.
func (w *writer) hold(key string, ttl time.Duration) lease.Lease {
	w.Helper()
	r := lease.AcquireRequest{Key: key, Owner: owner(key), TTL: ttl, Note: stored}
	got, err := w.store.Acquire(w.Context(), []lease.AcquireRequest{r})
	if err != nil || !got[0].Granted {
		w.Fatalf("%q is answered %+v, %v", key, got, err)
	}
	return lease.Lease{Key: key, Owner: r.Owner, Token: got[0].Token}
}

func (w *writer) release(l lease.Lease) {
	w.Helper()
	got, err := w.store.Release(w.Context(), []lease.Lease{l})
	if err != nil || got[0].Gone {
		w.Fatalf("%q is released with %+v, %v", l.Key, got, err)
	}
}

// fill writes a row of each kind that clients leave behind.
func (w *writer) fill() {
	w.Helper()
	w.sweptKey() // first: a sweep would take the other free rows too
	renewed, err := w.store.Renew(w.Context(), []lease.RenewRequest{{Lease: w.hold("held", time.Hour), TTL: ever}})
	if err != nil || renewed[0].Outcome != lease.Extended {
		w.Fatal(renewed, err)
	}
	for _, key := range []string{"a ", "\x00\xff", longest} {
		w.hold(key, ever)
	}
	for _, key := range []string{"free", "a"} {
		w.release(w.hold(key, ever))
	}
	w.hold("expired", time.Millisecond)
	w.movedKeys()
	w.release(w.hold("spent", ever))
	w.SetToken(w.T, "spent", lease.MaxToken-2)
	w.release(w.hold("spent", ever))
	w.waiters()
	w.results()
	w.group()
	w.latches()
	w.limits()
	w.forced()
	w.trace()
	if w.locks != nil {
		r := lease.AcquireRequest{Key: "by transaction", Owner: owner("by transaction"), TTL: ever, Note: stored}
		got, err := w.locks.Acquire(w.Context(), []lease.AcquireRequest{r})
		if err != nil || !got[0].Granted {
			w.Fatal(got, err)
		}
	}
	time.Sleep(5 * time.Millisecond) // what was to expire has, on every server's clock
}

// sweptKey leaves no row, and a floor.
func (w *writer) sweptKey() {
	w.release(w.hold("swept", ever))
	w.SetToken(w.T, "swept", 5000)
	w.release(w.hold("swept", ever))
	time.Sleep(2 * time.Millisecond)
	n, err := w.store.Sweep(w.Context(), lease.SweepOptions{Batch: 100})
	if err != nil || n != 1 {
		w.Fatal("swept", n, err)
	}
}

// movedKeys leaves one key in a cluster and one that has come back.
func (w *writer) movedKeys() {
	for _, key := range []string{"moved", "back"} {
		epoch, ok, err := w.store.Depart(w.Context(), w.hold(key, ever), placement)
		if err != nil || !ok || epoch != 1 {
			w.Fatal(key, epoch, ok, err)
		}
	}
	if ok, err := w.store.Return(w.Context(), "back", placement, 1); err != nil || !ok {
		w.Fatal(ok, err)
	}
}

// waiters leaves a queue of two live tickets and an expired one, and a registered process.
func (w *writer) waiters() {
	w.hold("fair", ever)
	ticket := func(name string, priority int, ttl time.Duration) lease.Ticket {
		return lease.Ticket{
			AcquireRequest: lease.AcquireRequest{Key: "fair", Owner: owner(name), TTL: ttl, Note: identity + "\t" + name},
			Priority:       priority,
		}
	}
	for _, t := range []lease.Ticket{
		ticket("first", 1, ever), ticket("urgent", 10, ever), ticket("dead", 5, time.Millisecond),
	} {
		_, err := w.store.Join(w.Context(), []lease.Ticket{t})
		w.must(err)
	}
	w.must(w.store.Register(w.Context(), owner("process"), "", []string{"held", "fair"}, ever))
}

// group leaves a key that two members share, and the intent of a caller that waits for it.
func (w *writer) group() {
	l := w.hold("shared", ever)
	made, err := w.store.Downgrade(w.Context(), []lease.RenewRequest{{Lease: l, TTL: ever}})
	if err != nil || made[0].Outcome != lease.Extended {
		w.Fatal(made, err)
	}
	r := lease.AcquireRequest{Key: "shared", Owner: owner("second"), TTL: ever, Note: stored}
	got, err := w.store.Share(w.Context(), []lease.AcquireRequest{r})
	if err != nil || !got[0].Granted || got[0].Token != l.Token {
		w.Fatal(got, err)
	}
	w.must(w.store.Intend(w.Context(), owner("writer"), []string{"shared"}, ever))
}

// latches leaves a latch of which one party of three has counted down.
func (w *writer) latches() {
	s := openLatches(w.T, w.Env)
	l, err := s.Open(w.Context(), "import", 3)
	w.must(err)
	w.must(l.CountDown(w.Context(), "shard-1"))
}

// limits leaves a limit of 2 that was 3, and the third slot held.
func (w *writer) limits() {
	l := lease.Limit{Name: "semaphore/reports", Slots: 3}
	_, err := w.store.MakeLimit(w.Context(), l)
	w.must(err)
	r := lease.AcquireRequest{Key: l.Slot(2), Owner: owner("reporter"), TTL: ever, Note: stored}
	got, err := w.store.AcquireWithin(w.Context(), l, []lease.AcquireRequest{r}, 1)
	if err != nil || !got[0].Granted {
		w.Fatal(got, err)
	}
	w.must(w.store.Resize(w.Context(), lease.Limit{Name: l.Name, Slots: 2}))
}

// forced leaves a key that an operator has taken from its holder, and the record of it.
func (w *writer) forced() {
	r := lease.AcquireRequest{Key: "taken away", Owner: owner("stuck"), TTL: ever, Note: stored}
	got, err := w.store.Acquire(w.Context(), []lease.AcquireRequest{r})
	if err != nil || !got[0].Granted {
		w.Fatal(got, err)
	}
	_, err = w.store.ForceRelease(w.Context(), lease.ForceRequest{
		Key: r.Key, By: "ada@ops", Reason: "stuck since Friday", ID: owner("request"),
	})
	w.must(err)
}

// trace leaves events of a key, and how many were dropped.
func (w *writer) trace() {
	now := time.Now()
	w.must(w.store.WriteTrace(w.Context(), []lease.TraceEvent{
		{
			Kind: lease.EventGranted, Key: "traced \x00\xff", At: now, ID: 1, Token: 7,
			Owner: owner("traced"), Identity: "host/1/test", Note: "by night", Took: 3 * time.Second,
		},
		{
			Kind: lease.EventLost, Key: "traced \x00\xff", At: now, ID: 2, Token: 7,
			Owner: owner("traced"), Identity: "host/1/test", Detail: "rowlock: lock lost",
		},
		{Kind: lease.EventDropped, At: now, ID: 3, Dropped: 12},
	}))
}

func openLatches(t *testing.T, e *testdb.Env) *latch.Latches {
	t.Helper()
	s, err := latch.New(e.DB, e.Dialect, &latch.Config{Keep: ever, Sweep: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// results leaves what was done once, with and without a tenant, a fingerprint and a result, and one
// that has expired.
func (w *writer) results() {
	for _, r := range requests {
		_, err := w.once.Do(w.Context(), r.Request, func(context.Context, *sql.Tx) ([]byte, error) { return r.result, nil })
		w.must(err)
	}
	w.Exec(w.T, `UPDATE {rowlock_once} SET expires_at = {now} - {second} WHERE {key} = ?`, []byte("expired"))
}

var requests = []struct {
	once.Request
	result []byte
}{
	{once.Request{Key: "charge/7", Fingerprint: once.Fingerprint([]byte("charge"), []byte("7"))}, []byte("\x00\xffdone ☕")},
	{once.Request{Tenant: "acme", Key: "charge/7"}, nil},
	{once.Request{Key: "expired"}, []byte("old")},
}
