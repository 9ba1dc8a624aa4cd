package optimistic_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

const (
	// ttl is far longer than any test: a key that becomes free was released, or expired by the
	// test.
	ttl = 5 * time.Minute
	// patience bounds what must come to an end.
	patience = 20 * time.Second
)

func ok(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func wantIs(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("got error %v, want %v", err, target)
		}
	}
}

func wantSays(tb testing.TB, err error, words ...string) {
	tb.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			tb.Errorf("error %v does not say %q", err, w)
		}
	}
}

// ask asks s once for key, under an owner of its own.
func ask(tb testing.TB, s lease.Store, key string) (lease.Lease, lease.Acquired) {
	tb.Helper()
	req := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl, Note: "test"}
	a, err := s.Acquire(tb.Context(), []lease.AcquireRequest{req})
	ok(tb, err)
	return lease.Lease{Key: key, Owner: req.Owner, Token: a[0].Token}, a[0]
}

// hold acquires key, which must be free.
func hold(tb testing.TB, s lease.Store, key string) lease.Lease {
	tb.Helper()
	l, a := ask(tb, s, key)
	if !a.Granted {
		tb.Fatalf("%q is held by %+v, and was to be free", key, a.Holder)
	}
	return l
}

func release(tb testing.TB, s lease.Store, l lease.Lease) {
	tb.Helper()
	a, err := s.Release(tb.Context(), []lease.Lease{l})
	if err != nil || a[0].Gone {
		tb.Fatalf("release: %+v, %v", a, err)
	}
}

// account is a row of a table of the user's own.
type account struct {
	ID      int64  `db:"id"`
	Name    string `db:"name"`
	Balance int64  `db:"balance"`
	Version int64  `db:"version"`
}

// accounts makes a table with rows 1 to n, each with a balance of 100 and version 1.
func accounts(tb testing.TB, e *testdb.Env, n int) *optimistic.Table[account] {
	tb.Helper()
	name := own(e, "accounts")
	create(tb, e, name, `id BIGINT PRIMARY KEY, name VARCHAR(50) NOT NULL UNIQUE, balance BIGINT NOT NULL, version BIGINT`)
	for i := range n {
		e.Exec(tb, `INSERT INTO `+name+` (id, name, balance, version) VALUES (?, ?, 100, 1)`, i+1, "n"+string(rune('a'+i)))
	}
	return tableOf[account](tb, e, name)
}

// own is the name of a table of the user's.
func own(e *testdb.Env, name string) string { return e.Dialect.Names().Prefix + name }

func create(tb testing.TB, e *testdb.Env, name, columns string) {
	tb.Helper()
	e.Exec(tb, `CREATE TABLE `+name+` (`+columns+`)`)
	tb.Cleanup(func() { e.Exec(tb, `DROP TABLE `+name) })
}

func tableOf[T any](tb testing.TB, e *testdb.Env, name string) *optimistic.Table[T] {
	tb.Helper()
	t, err := optimistic.NewTable[T](e.Dialect, name)
	ok(tb, err)
	return t
}

func get(tb testing.TB, t *optimistic.Table[account], ext optimistic.Ext, id int64) account {
	tb.Helper()
	a, err := t.Get(tb.Context(), ext, id)
	ok(tb, err)
	return a
}

// beginAt begins a transaction that is rolled back at the end of the test at the latest.
func beginAt(tb testing.TB, db *sql.DB, level sql.IsolationLevel) *sql.Tx {
	tb.Helper()
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
	ok(tb, err)
	tb.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// beforeUpdate puts a trigger on each row of the accounts, which does what stands for the driver.
func beforeUpdate(tb testing.TB, e *testdb.Env, do map[string]string) {
	tb.Helper()
	name := own(e, "accounts")
	when := `CREATE TRIGGER ` + name + `_t BEFORE UPDATE ON ` + name + ` FOR EACH ROW `
	if e.Driver == "pgx" {
		e.Exec(tb, `CREATE FUNCTION `+name+`_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN `+do["pgx"]+` END'`)
		tb.Cleanup(func() { e.Exec(tb, `DROP FUNCTION `+name+`_f() CASCADE`) })
		e.Exec(tb, when+`EXECUTE FUNCTION `+name+`_f()`)
		return
	}
	e.Exec(tb, when+do[e.Driver])
}
