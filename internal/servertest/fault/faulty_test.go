package fault

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// faulty is a client whose connections can be broken, beside one on the same tables whose cannot.
type faulty struct {
	*testdb.Env
	*rowlock.Client
	other  *rowlock.Client
	pool   *sql.DB // of the client that can be broken
	faults *faultdb.Switch
	log    *faultdb.Log
}

func newFaulty(tb testing.TB, e *testdb.Env, change func(*rowlock.Config)) *faulty {
	tb.Helper()
	e.OnlyReleasesRelax(tb)
	f := &faulty{Env: e, faults: &faultdb.Switch{}, log: &faultdb.Log{}}
	db, err := faultdb.Open(e.Driver, e.Source, faultdb.Any(f.log, f.faults))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	f.pool = db
	f.Client = servertest.Open(tb, f.pool, e, change)
	f.other = servertest.Open(tb, e.DB, e, nil)
	return f
}

// wantFreeSoon fails the test unless another client gets the key long before its lease would have
// expired.
func (f *faulty) wantFreeSoon(tb testing.TB, key string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), servertest.FreeSoon)
	defer cancel()
	l, err := f.other.Lock(ctx, key)
	if err != nil {
		tb.Fatalf("%q was left behind: %v", key, err)
	}
	if err := l.Unlock(ctx); err != nil {
		tb.Errorf("the next holder of %q: %v", key, err)
	}
}

// row returns the owner and token of a key's row.
func (f *faulty) row(tb testing.TB, key string) (owner []byte, token rowlock.Token) {
	tb.Helper()
	return rowOf(tb, f.Env, key)
}

func rowOf(tb testing.TB, e *testdb.Env, key string) (owner []byte, token rowlock.Token) {
	tb.Helper()
	err := e.DB.QueryRowContext(context.Background(),
		e.SQL(`SELECT owner, token FROM {rowlock} WHERE {key} = ?`), []byte(key)).Scan(&owner, &token)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		tb.Fatal(err)
	}
	return owner, token
}

// releases matches the statement of a release. PostgreSQL has one whose commit is relaxed.
func releases(op faultdb.Op) bool {
	return op.Executes() && (strings.Contains(op.Query, "/* rowlock release */") ||
		strings.Contains(op.Query, "/* rowlock release-relaxed */"))
}

// grants matches the statements that may grant: what sets the time of acquisition.
func grants(op faultdb.Op) bool {
	return op.Executes() &&
		(strings.Contains(op.Query, "acquired_at =") ||
			strings.Contains(op.Query, "note, token, acquired_at, expires_at, placement)"))
}

// acquires matches the statements of an acquire, and the read that some dialects begin with.
func acquires(op faultdb.Op) bool {
	return grants(op) || op.Executes() && strings.Contains(op.Query, "END AS state")
}

func wantLives(tb testing.TB, l *rowlock.Lock) {
	tb.Helper()
	if err := context.Cause(l.Context()); err != nil {
		tb.Errorf("the lock on %q is over: %v", l.Key(), err)
	}
}

var brokenReports = []struct {
	name string
	err  error
}{
	{"ErrBadConn", driver.ErrBadConn},
	{"ErrUnexpectedEOF", io.ErrUnexpectedEOF},
}
