package forupdate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

func TestAPoolIsNoTransaction(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		l, rows := newLocker(t, e), forupdate.Rows{Table: jobs(t, e, 1), Key: "id"}
		for name, err := range map[string]error{
			"lock": l.Lock(t.Context(), e.DB, "k"), "try": l.TryLock(t.Context(), e.DB, "k"),
			"rows": l.LockRows(t.Context(), e.DB, rows, 1), "try rows": l.TryLockRows(t.Context(), e.DB, rows, 1),
			"pick": l.Pick(t.Context(), e.DB, &[]job{}, forupdate.Queue{Table: rows.Table, Limit: 1}),
		} {
			if !errors.Is(err, lease.ErrConfig) {
				t.Errorf("%s in a pool: got %v, want lease.ErrConfig", name, err)
			}
		}
		conn, err := e.DB.Conn(t.Context())
		ok(t, err)
		defer conn.Close()
		if e.Name == "postgres" { // the others do not tell
			wantIs(t, l.Lock(t.Context(), conn, "k"), lease.ErrConfig)
		}
		_, err = conn.ExecContext(t.Context(), `BEGIN`)
		ok(t, err)
		ok(t, l.Lock(t.Context(), conn, "k"))
		_, err = conn.ExecContext(t.Context(), `ROLLBACK`)
		ok(t, err)
	})
}

// wantMissing wants err to name keys, or to be nil if there are none.
func wantMissing(t *testing.T, what string, err error, keys ...any) {
	t.Helper()
	var missing *forupdate.MissingError
	if errors.As(err, &missing); len(keys) == 0 && err != nil || len(keys) > 0 && (missing == nil || !reflect.DeepEqual(missing.Keys, keys)) {
		t.Errorf("%s: got %v, want %v to be missing", what, err, keys)
	}
}

func TestTheDatabaseSaysWhichRowsAKeyMeans(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		l := newLocker(t, e)
		e.Exec(t, `CREATE TABLE `+own(e)+` (id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL, day TIMESTAMP NULL)`)
		t.Cleanup(func() { e.Exec(t, `DROP TABLE `+own(e)) })
		e.Exec(t, `INSERT INTO `+own(e)+` VALUES (1, 'alice', '2020-01-01 00:00:00'), (2, 'Alice', NULL), (3, 'carol', NULL)`)
		ids, names, days := forupdate.Rows{Table: own(e), Key: "id"}, forupdate.Rows{Table: own(e), Key: "name"}, forupdate.Rows{Table: own(e), Key: "day"}
		day := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		one := 1
		for name, lock := range map[string]func(context.Context, forupdate.Tx, forupdate.Rows, ...any) error{"lock": l.LockRows, "try": l.TryLockRows} {
			tx := begin(t, e)
			wantMissing(t, name+" two rows for one name", lock(t.Context(), tx, names, "alice", "Alice", "bob"), "bob")
			// MySQL's collations take these for the same, so that as many rows come as there are
			// keys.
			if e.Driver == "mysql" {
				wantMissing(t, name+" in other letters", lock(t.Context(), tx, names, "alice", "bob"), "bob")
				wantMissing(t, name+" in other letters alone", lock(t.Context(), tx, names, "CAROL"))
				wantMissing(t, name+" one row in two spellings", lock(t.Context(), tx, names, "carol", "CAROL"))
				wantMissing(t, name+" one row in two spellings and none", lock(t.Context(), tx, names, "carol", "CAROL", "bob"), "bob")
			}
			wantMissing(t, name+" by a pointer and a Valuer", lock(t.Context(), tx, ids, &one, sql.NullInt64{Int64: 3, Valid: true}, 77), 77)
			wantMissing(t, name+" by a time", lock(t.Context(), tx, days, day, day.Add(time.Hour)), day.Add(time.Hour))
			wantMissing(t, name+" by NULL", lock(t.Context(), tx, ids, 1, nil), nil)
			ok(t, tx.Rollback())
		}
	})
}

func TestRowsOfTheTransactionsOwnMakingAreThere(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		l, rows := newLocker(t, e), forupdate.Rows{Table: jobs(t, e, 3), Key: "id"}
		for _, level := range levels {
			tx, other := beginAt(t, e, level), beginAt(t, e, level)
			ok(t, l.LockRows(t.Context(), other, rows, 2))
			_, err := tx.ExecContext(t.Context(), `INSERT INTO `+rows.Table+` VALUES (9, 'new', 'x')`)
			ok(t, err)
			err = l.TryLockRows(t.Context(), tx, rows, 1, 2, 9)
			if held := new(lease.HeldError); !errors.As(err, &held) || held.Key != "2" {
				t.Errorf("%s: got %v, want a HeldError of 2", level, err)
			}
			wantMissing(t, level.String(), l.TryLockRows(t.Context(), tx, rows, 1, 9, 10), 10)
			if e.Name == "postgres" {
				_, err = tx.ExecContext(t.Context(), `DELETE FROM `+rows.Table+` WHERE id = 1`)
				ok(t, err)
				wantMissing(t, level.String()+" deleted", l.TryLockRows(t.Context(), tx, rows, 1), 1)
			}
			ok(t, tx.Rollback())
			ok(t, other.Rollback())
		}
	})
}

// The limit that ended the waiting may have been the session's own.
func TestAnErrorSaysHowLongWasWaited(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		l, shorter := newLocker(t, e, forupdate.Timeout(patience)), newLocker(t, e, forupdate.Timeout(time.Second))
		first, second := begin(t, e), begin(t, e)
		ok(t, l.Lock(t.Context(), first, "k"))
		if e.Name == "mysql" {
			_, err := second.ExecContext(t.Context(), `SET SESSION innodb_lock_wait_timeout = 1`)
			ok(t, err)
			shorter = l
		}
		began := time.Now()
		err := shorter.Lock(t.Context(), second, "k")
		took := time.Since(began)
		wantIs(t, err, lease.ErrHeld)
		said := regexp.MustCompile(`waited ([\d.]+m?s)`).FindStringSubmatch(fmt.Sprint(err))
		if said == nil {
			t.Fatalf("%v does not say how long was waited", err)
		}
		waited, err := time.ParseDuration(said[1])
		// Of a limit of a second, to which a server or a busy machine may add.
		if ok(t, err); waited < time.Second-50*time.Millisecond || waited > took+50*time.Millisecond {
			t.Errorf("%s were waited, it says, of %s", waited, took)
		}
	})
}

// Thousands of free keys are no reason to wait, and are not all listed in an error.
func TestThousandsOfKeysAreLockedWithoutWaiting(t *testing.T) {
	const n, timeout = 6000, 2 * time.Second
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		l := newLocker(t, e, forupdate.Timeout(patience))
		keys := make([]string, n)
		for i := range keys {
			keys[i] = fmt.Sprintf("key %04d", i)
		}
		tx := begin(t, e)
		ok(t, l.Lock(t.Context(), tx, keys...))
		if e.Name == "sqlite" {
			return
		}
		other := begin(t, e)
		for _, key := range []string{keys[0], keys[n/2], keys[n-1]} {
			wantIs(t, l.TryLock(t.Context(), other, key), lease.ErrHeld)
		}
		ok(t, tx.Rollback())
		ok(t, l.Lock(t.Context(), other, keys[n-1]))
		tx = begin(t, e)
		began := time.Now()
		err := newLocker(t, e, forupdate.Timeout(timeout)).Lock(t.Context(), tx, keys...)
		wantIs(t, err, lease.ErrHeld)
		if took := time.Since(began); took > 10*timeout { // and not for so long at each key
			t.Errorf("waited for %s, was to wait for %s", took, timeout)
		}
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}

// database/sql rolls a transaction back as soon as its ctx ends, and then nothing can be given back
// on its connection. A ctx that ends in the moment in which the lock is asked for leaves it changed
// all the same, which is rare and cannot be helped: so one round of several may.
func TestAWaitOnSQLiteThatIsCancelledLeavesTheConnectionAsItWas(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	l := newLocker(t, e, forupdate.Timeout(patience))
	writer := begin(t, e)
	ok(t, l.Lock(t.Context(), writer, "k"))
	const rounds = 5
	same := 0
	for range rounds {
		db := deferring(t, e)
		db.SetMaxOpenConns(1)
		ctx, cancel := context.WithCancel(t.Context())
		tx, err := db.BeginTx(ctx, nil)
		ok(t, err)
		before := settings(t, e, tx)
		time.AfterFunc(50*time.Millisecond, cancel)
		wantIs(t, l.Lock(ctx, tx, "k"), context.Canceled)
		conn, err := db.Conn(t.Context())
		ok(t, err)
		if now := settings(t, e, conn); now == before {
			same++
		} else {
			t.Logf("busy_timeout is %s, was %s", now, before)
		}
		ok(t, conn.Close())
	}
	if same < rounds-2 {
		t.Errorf("%d of %d connections are as they were", same, rounds)
	}
}
