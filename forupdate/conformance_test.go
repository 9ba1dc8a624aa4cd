package forupdate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
)

// onServers runs f as a subtest on every database that can keep a transaction as a lock: SQLite has
// no row locks.
func onServers(t *testing.T, f func(t *testing.T, e *testdb.Env)) {
	t.Helper()
	testdb.EachOf(t, testdb.Servers, f)
}

// most is how many locks the stores of these tests hold at once.
const most = 48

func TestConformance(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		locktest.Run(t, harness(t, e))
	})
}

func TestRandomCalls(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		locktest.RunRandom(t, harness(t, e), 10)
	})
}

func open(tb testing.TB, db forupdate.DB, e *testdb.Env, opts ...forupdate.Option) *forupdate.Store {
	tb.Helper()
	s, err := forupdate.New(db, e.Dialect, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func harness(t *testing.T, e *testdb.Env) locktest.Harness {
	other := testdb.Kinds[0].Open(t) // a database that has nothing to do with e's
	var all fleet
	begin := func(tb testing.TB, e *testdb.Env) locktest.Tx {
		tb.Helper()
		tx, err := e.DB.BeginTx(context.Background(), nil)
		if err != nil {
			tb.Fatal(err)
		}
		return locktest.SQL(tx)
	}
	store := func(tb testing.TB) lease.Store {
		tb.Helper()
		s := open(tb, e.DB, e, forupdate.Connections(most), forupdate.Look(20*time.Millisecond))
		all.add(s)
		return s
	}
	empty := func(tb testing.TB, _ lease.Store) {
		tb.Helper()
		all.release(tb)
		e.Exec(tb, `DELETE FROM {rowlock}`)
		e.Exec(tb, `DELETE FROM {rowlock_hold}`)
		e.Exec(tb, `DELETE FROM {rowlock_queue}`)
		e.Exec(tb, `DELETE FROM {rowlock_wait}`)
	}
	return locktest.Harness{
		Open: func(tb testing.TB) lease.Store {
			all = fleet{}
			empty(tb, nil)
			return store(tb)
		},
		Another:  func(tb testing.TB, _ lease.Store) lease.Store { return store(tb) },
		Empty:    testdb.InShort(empty),
		Expire:   func(tb testing.TB, _ lease.Store, key string) { all.silence(tb, e, key) },
		SetToken: func(tb testing.TB, _ lease.Store, key string, token lease.Token) { e.SetToken(tb, key, token) },
		Begin:    func(tb testing.TB, _ lease.Store) locktest.Tx { return begin(tb, e) },
		Foreign:  func(tb testing.TB) locktest.Tx { return begin(tb, other) },
		Load:     300 * time.Millisecond,
		Slow:     true, // a lock takes three round trips, and now and then a connection
		Most:     most,
	}
}

// fleet are the stores of one harness.
type fleet struct {
	mu     sync.Mutex
	stores []*forupdate.Store
}

func (f *fleet) add(s *forupdate.Store) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stores = append(f.stores, s)
}

func (f *fleet) all() []*forupdate.Store {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.stores)
}

// release ends every hold of the stores.
func (f *fleet) release(tb testing.TB) {
	tb.Helper()
	for _, s := range f.all() {
		held, err := s.Inspect(tb.Context(), lease.Filter{})
		if err != nil {
			tb.Fatal(err)
		}
		leases := make([]lease.Lease, len(held))
		for i, r := range held {
			leases[i] = r.Lease
		}
		if _, err := s.Release(tb.Context(), leases); err != nil {
			tb.Fatal(err)
		}
	}
}

// silence has key's holder have been silent for its TTL: the server has ended its session, and its
// row has expired.
func (f *fleet) silence(tb testing.TB, e *testdb.Env, key string) {
	tb.Helper()
	for _, s := range f.all() {
		endAfter(tb, e, s, key, func() { e.Expire(tb, key) })
	}
}

// kill ends the session that holds key, if s does, and returns when the server has.
func kill(tb testing.TB, e *testdb.Env, s *forupdate.Store, key string) (lease.Lease, bool) {
	tb.Helper()
	return endAfter(tb, e, s, key, func() {})
}

// endAfter is kill, with what comes before the end and after the holder's last call. A holder is
// told of the end before the server has undone its transaction, so that a row that expires later
// shows others a time that remains.
func endAfter(tb testing.TB, e *testdb.Env, s *forupdate.Store, key string, before func()) (lease.Lease, bool) {
	tb.Helper()
	var session int64
	l, ok, err := s.With(tb.Context(), key, func(id int64) { session = id; before(); end(tb, e, id) })
	if err != nil && session == 0 {
		return l, false // it was dead already
	}
	if ok {
		eventually(tb, fmt.Sprintf("the end of session %d", session), func() bool { return isFree(tb, e, key) || !alive(tb, e, session) })
	}
	return l, ok
}

func end(tb testing.TB, e *testdb.Env, id int64) {
	tb.Helper()
	query := `SELECT pg_terminate_backend(%d)`
	if e.Driver == "mysql" {
		query = `KILL %d`
	}
	if _, err := e.DB.ExecContext(tb.Context(), fmt.Sprintf(query, id)); err != nil {
		tb.Fatal(err)
	}
}

// sessions is where each server lists its sessions. MySQL's information_schema.processlist fails
// where any of them runs a statement with bytes in it that are no text.
var sessions = map[string]string{
	"postgres": `pg_stat_activity WHERE pid`, "mariadb": `information_schema.processlist WHERE id`, "mysql": `performance_schema.threads WHERE processlist_id`,
}

func alive(tb testing.TB, e *testdb.Env, id int64) (there bool) {
	tb.Helper()
	query := fmt.Sprintf(`SELECT EXISTS (SELECT 1 FROM %s = %d)`, sessions[e.Name], id)
	if err := e.DB.QueryRowContext(tb.Context(), query).Scan(&there); err != nil {
		tb.Fatal(err)
	}
	return there
}

// isFree reports whether no transaction has locked key's row.
func isFree(tb testing.TB, e *testdb.Env, key string) bool {
	tb.Helper()
	var one int
	err := e.DB.QueryRowContext(tb.Context(), e.SQL(`SELECT 1 FROM {rowlock_hold} WHERE {key} = ? FOR UPDATE SKIP LOCKED`), []byte(key)).Scan(&one)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		tb.Fatal(err)
	}
	return err == nil
}

// patience bounds what must come to an end.
const patience = 20 * time.Second

func eventually(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	for began := time.Now(); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Since(began) > patience {
			tb.Fatalf("%s: not within %s", what, patience)
		}
	}
}
