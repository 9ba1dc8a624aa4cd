package forupdate_test

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// job is a row of the application's table.
type job struct {
	ID    int64  `db:"id"`
	State string `db:"state"`
}

// jobs makes the application's table, with n rows from 1 on.
func jobs(t *testing.T, e *testdb.Env, n int) (table string) {
	t.Helper()
	e.Exec(t, `CREATE TABLE `+own(e)+` (id INTEGER PRIMARY KEY, state VARCHAR(20) NOT NULL, secret VARCHAR(20))`)
	t.Cleanup(func() { e.Exec(t, `DROP TABLE `+own(e)) })
	for i := range n {
		e.Exec(t, `INSERT INTO `+own(e)+` VALUES (?, 'new', 'x')`, i+1)
	}
	return own(e)
}

func TestRowsAreLockedAndNoOthers(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		l, rows := newLocker(t, e), forupdate.Rows{Table: jobs(t, e, 12), Key: "id"}
		for _, level := range levels {
			first, second := beginAt(t, e, level), beginAt(t, e, level)
			ok(t, l.LockRows(t.Context(), first, rows, 10, 2, 10, int64(3)))
			err := l.TryLockRows(t.Context(), second, rows, 1, 3)
			wantIs(t, err, lease.ErrHeld)
			if held := new(lease.HeldError); !errors.As(err, &held) || held.Key != "3" {
				t.Errorf("got %v, want a HeldError of 3", err)
			}
			ok(t, l.TryLockRows(t.Context(), second, rows, 1, 4, 5, 6, 7, 8, 9, 11, 12))
			ok(t, first.Commit())
			ok(t, l.TryLockRows(t.Context(), second, rows, 2, 3, 10))
			ok(t, second.Rollback())
		}
	})
}

func TestRowsThatAreNotThereAreNamed(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		l, rows := newLocker(t, e), forupdate.Rows{Table: jobs(t, e, 2), Key: "id"}
		tx := begin(t, e)
		ok(t, l.LockRows(t.Context(), tx, rows, 2, 1))
		ok(t, l.TryLockRows(t.Context(), tx, rows, 2, 1))
		for name, err := range map[string]error{
			"lock": l.LockRows(t.Context(), tx, rows, 1, 7, 2, 9), "try": l.TryLockRows(t.Context(), tx, rows, 1, 7, 2, 9),
		} {
			var missing *forupdate.MissingError
			if !errors.Is(err, forupdate.ErrMissing) || !errors.As(err, &missing) || !reflect.DeepEqual(missing.Keys, []any{7, 9}) || missing.Table != own(e) {
				t.Errorf("%s: got %v, want a MissingError of 7 and 9", name, err)
			}
		}
		names := forupdate.Rows{Table: rows.Table, Key: "state"}
		ok(t, l.LockRows(t.Context(), tx, names, "new"))
		wantIs(t, l.LockRows(t.Context(), tx, names, []byte("old"), "new"), forupdate.ErrMissing)
	})
}

// Each of 200 jobs is done once, by 8 workers of whom none waits for another's job.
func TestNoTwoPickTheSameRow(t *testing.T) {
	const workers, all, each = 8, 200, 3
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		l, table := newLocker(t, e), jobs(t, e, all)
		q := forupdate.Queue{Table: table, Where: e.SQL(`state = ?`), Args: []any{"new"}, OrderBy: "id", Limit: each}
		var mu sync.Mutex
		done := make(map[int64]int)
		pickSome := func() (int, error) {
			tx, err := e.DB.BeginTx(t.Context(), &sql.TxOptions{Isolation: readCommitted(e)})
			if err != nil {
				return 0, err
			}
			defer func() { _ = tx.Rollback() }()
			var picked []job
			if err := l.Pick(t.Context(), tx, &picked, q); err != nil {
				return 0, err
			}
			for _, j := range picked {
				if _, err := tx.ExecContext(t.Context(), e.SQL(`UPDATE `+table+` SET state = 'done' WHERE id = ?`), j.ID); err != nil {
					return 0, err
				}
			}
			err = tx.Commit()
			mu.Lock()
			defer mu.Unlock()
			for _, j := range picked {
				done[j.ID]++
			}
			return len(picked), err
		}
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for n, err := pickSome(); n > 0 || err != nil; n, err = pickSome() {
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		for id := range int64(all) {
			if done[id+1] != 1 {
				t.Errorf("job %d was done %d times", id+1, done[id+1])
			}
		}
	})
}

func readCommitted(e *testdb.Env) sql.IsolationLevel {
	if e.Name == "sqlite" {
		return sql.LevelDefault
	}
	return sql.LevelReadCommitted
}

// A caller that picks while another has picked gets the next rows, at once.
func TestWhoPicksWaitsForNobody(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		l, table := newLocker(t, e, forupdate.Timeout(patience)), jobs(t, e, 6)
		q := forupdate.Queue{Table: table, OrderBy: "id DESC", Limit: 4}
		var first, second, third []job
		one, two, three := beginAt(t, e, sql.LevelReadCommitted), beginAt(t, e, sql.LevelReadCommitted), beginAt(t, e, sql.LevelReadCommitted)
		ok(t, l.Pick(t.Context(), one, &first, q))
		began := time.Now()
		ok(t, l.Pick(t.Context(), two, &second, q))
		ok(t, l.Pick(t.Context(), three, &third, q))
		if took := time.Since(began); took > patience/2 { // half of what a locker waits
			t.Errorf("picking took %s while another had picked", took)
		}
		want := [][]job{{{6, "new"}, {5, "new"}, {4, "new"}, {3, "new"}}, {{2, "new"}, {1, "new"}}, nil}
		for i, got := range [][]job{first, second, third} {
			if fmt.Sprint(got) != fmt.Sprint(want[i]) {
				t.Errorf("pick %d: %v, want %v", i+1, got, want[i])
			}
		}
	})
}

// A struct may be described once for sqlx, for an optimistic.Table and to be picked into.
func TestRowsArePickedIntoWhatSqlxReadsInto(t *testing.T) {
	type What struct {
		State string
		note  string
	}
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		l, table := newLocker(t, e), jobs(t, e, 2)
		var picked []struct {
			ID int64 `db:"id,key"`
			*What
			Secret  sql.NullString `db:"secret"`
			Ignored int            `db:"-"`
		}
		tx := begin(t, e)
		for range 2 { // the second time over what is there
			ok(t, l.Pick(t.Context(), tx, &picked, forupdate.Queue{Table: table, Where: "id > 0", OrderBy: "id", Limit: 9}))
			if len(picked) != 2 || picked[1].ID != 2 || picked[1].State != "new" || picked[1].Secret.String != "x" || picked[1].note != "" {
				t.Errorf("picked %+v", picked)
			}
		}
		var bad []struct {
			Name string `db:"a name"`
		}
		wantIs(t, l.Pick(t.Context(), tx, &bad, forupdate.Queue{Table: table, Limit: 1}), lease.ErrConfig)
	})
}

func TestADeferredTransactionOfSQLiteIsToldSo(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	l, table := newLocker(t, e, forupdate.Timeout(50*time.Millisecond)), jobs(t, e, 1)
	db := deferring(t, e)
	deferred := func(read bool) *sql.Tx {
		t.Helper()
		tx, err := db.BeginTx(t.Context(), nil)
		ok(t, err)
		t.Cleanup(func() { _ = tx.Rollback() })
		if read {
			var n int
			ok(t, tx.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&n))
		}
		return tx
	}
	late := deferred(true)
	e.Exec(t, `UPDATE `+table+` SET state = 'old'`)
	for name, err := range map[string]error{
		"lock": l.Lock(t.Context(), late, "k"), "try": l.TryLock(t.Context(), late, "k"),
		"rows": l.LockRows(t.Context(), late, forupdate.Rows{Table: table, Key: "id"}, 1), "pick": l.Pick(t.Context(), late, &[]job{}, forupdate.Queue{Table: table, Limit: 1}),
	} {
		if !errors.Is(err, forupdate.ErrDeferred) || !strings.Contains(err.Error(), "BEGIN IMMEDIATE") {
			t.Errorf("%s with a snapshot that is old: got %v, want ErrDeferred and the cure", name, err)
		}
	}
	ok(t, late.Rollback())
	writer := begin(t, e) // begins with the write lock
	ok(t, l.Lock(t.Context(), writer, "k", "l"))
	tx := deferred(false)
	before := settings(t, e, tx)
	wantIs(t, l.TryLock(t.Context(), tx, "k"), forupdate.ErrDeferred, lease.ErrHeld)
	wantIs(t, l.Lock(t.Context(), tx, "another"), forupdate.ErrDeferred, lease.ErrHeld)
	if now := settings(t, e, tx); now != before {
		t.Errorf("busy_timeout is %s, was %s", now, before)
	}
	ok(t, writer.Commit())
	ok(t, l.Lock(t.Context(), tx, "k"))
	ok(t, l.LockRows(t.Context(), tx, forupdate.Rows{Table: table, Key: "id"}, 1))
	ok(t, tx.Commit())
}

func TestAStoreOnSQLiteIsRefused(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	_, err := forupdate.New(e.DB, e.Dialect)
	wantIs(t, err, lease.ErrUnsupported)
}
