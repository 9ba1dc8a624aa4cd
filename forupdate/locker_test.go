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
)

func newLocker(tb testing.TB, e *testdb.Env, opts ...forupdate.Option) *forupdate.Locker {
	tb.Helper()
	l, err := forupdate.NewLocker(e.DB, e.Dialect, opts...)
	ok(tb, err)
	tb.Cleanup(func() { _ = l.Close() })
	return l
}

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

func begin(tb testing.TB, e *testdb.Env) *sql.Tx { return beginAt(tb, e, sql.LevelDefault) }

func beginAt(tb testing.TB, e *testdb.Env, level sql.IsolationLevel) *sql.Tx {
	tb.Helper()
	tx, err := e.DB.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
	ok(tb, err)
	tb.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// levels are what a database may default to.
var levels = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

func TestAKeyIsLockedUntilTheTransactionEnds(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		l := newLocker(t, e)
		for _, level := range levels {
			for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
				first, second := beginAt(t, e, level), beginAt(t, e, level)
				ok(t, l.Lock(t.Context(), first, "b", "a", "b"))
				err := l.TryLock(t.Context(), second, "a")
				wantIs(t, err, lease.ErrHeld)
				if held := new(lease.HeldError); !errors.As(err, &held) || held.Key != "a" {
					t.Errorf("got %v, want a HeldError of %q", err, "a")
				}
				ok(t, l.TryLock(t.Context(), second, "c")) // the transaction can go on
				wantIs(t, l.TryLock(t.Context(), second, "c", "b", "d"), lease.ErrHeld)
				ok(t, end(first))
				ok(t, l.TryLock(t.Context(), second, "d", "c", "b", "a"))
				ok(t, second.Rollback())
			}
		}
	})
}

func TestALockWaitsForItsTurn(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		l := newLocker(t, e)
		first, second := begin(t, e), begin(t, e)
		ok(t, l.Lock(t.Context(), first, "k"))
		done := make(chan error, 1)
		go func() { done <- l.Lock(t.Context(), second, "k") }()
		eventually(t, "somebody to wait", func() bool { return waiting(t, e) > 0 })
		ok(t, first.Commit())
		ok(t, <-done)
	})
}

// waiting is how many sessions wait for a row lock.
func waiting(tb testing.TB, e *testdb.Env) (n int) {
	tb.Helper()
	query := map[string]string{
		"postgres": `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%` + e.Dialect.Names().Prefix + `%'`,
		"mariadb":  `SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`,
		"mysql":    `SELECT count(*) FROM performance_schema.data_lock_waits`,
	}[e.Name]
	if e.Name == "mariadb" {
		// It answers from a cache that is made anew only after 100 ms without a question.
		time.Sleep(150 * time.Millisecond)
	}
	ok(tb, e.DB.QueryRowContext(tb.Context(), query).Scan(&n))
	return n
}

func TestTwoWhoNameTheSameKeysInOppositeOrderDoNotDeadlock(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		l := newLocker(t, e, forupdate.Timeout(patience))
		e.Exec(t, `CREATE TABLE `+own(e)+` (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)`)
		t.Cleanup(func() { e.Exec(t, `DROP TABLE `+own(e)) })
		for i := range 5 {
			e.Exec(t, `INSERT INTO `+own(e)+` VALUES (?, 0)`, i)
		}
		keys, rows := []string{"a", "b", "c", "d", "e"}, []any{0, 1, 2, 3, 4}
		// A REPEATABLE READ transaction that has read another row does not see a new key.
		before := begin(t, e)
		ok(t, l.Lock(t.Context(), before, keys...))
		ok(t, before.Commit())
		var wg sync.WaitGroup
		for w := range 8 {
			keys, rows := slices.Clone(keys), slices.Clone(rows)
			if w%2 == 1 {
				slices.Reverse(keys)
				slices.Reverse(rows)
			}
			wg.Go(func() {
				for range 15 {
					tx, err := e.DB.BeginTx(t.Context(), &sql.TxOptions{Isolation: levels[w%2]})
					if err == nil {
						err = errors.Join(l.LockRows(t.Context(), tx, forupdate.Rows{Table: own(e), Key: "id"}, rows...), l.Lock(t.Context(), tx, keys...), tx.Commit())
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// own is the name of a table that is the application's.
func own(e *testdb.Env) string { return e.Dialect.Names().Prefix + "own" }

// The usual way to lock a key that may have no row: look for it FOR UPDATE, and insert it if it is
// not there. Under MySQL's default isolation both lock the gap, and both inserts wait for the
// other's.
func TestALookForAnAbsentKeyFollowedByAnInsertDeadlocksAndLockDoesNot(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		if e.Driver != "mysql" {
			t.Skip("there are gap locks on MySQL and MariaDB only")
		}
		if err := bothLock(t, e, func(tx *sql.Tx, meet func()) error {
			var one int
			err := tx.QueryRowContext(t.Context(), e.SQL(`SELECT 1 FROM {rowlock_hold} WHERE {key} = 'naive' FOR UPDATE`)).Scan(&one)
			if !errors.Is(err, sql.ErrNoRows) {
				return fmt.Errorf("not absent: %w", err)
			}
			meet()
			_, err = tx.ExecContext(t.Context(), e.SQL(`INSERT INTO {rowlock_hold} VALUES ('naive', {now})`))
			return err
		}); err == nil {
			t.Error("the naive way did not deadlock: then this test proves nothing")
		}
		l := newLocker(t, e)
		if err := bothLock(t, e, func(tx *sql.Tx, meet func()) error {
			meet()
			return l.Lock(t.Context(), tx, "absent", "absent too")
		}); err != nil {
			t.Error(err)
		}
	})
}

// bothLock has two transactions do f at REPEATABLE READ at the same time. meet returns when both
// have called it.
func bothLock(t *testing.T, e *testdb.Env, f func(tx *sql.Tx, meet func()) error) error {
	t.Helper()
	var met sync.WaitGroup
	met.Add(2)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range errs {
		tx := beginAt(t, e, sql.LevelRepeatableRead)
		wg.Go(func() {
			errs[i] = f(tx, func() { met.Done(); met.Wait() })
			if errs[i] == nil {
				errs[i] = tx.Commit()
			} else {
				_ = tx.Rollback()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// settings are what bounds the waiting of a session.
func settings(t *testing.T, e *testdb.Env, tx forupdate.Tx) string {
	t.Helper()
	query := map[string]string{
		"postgres": `SELECT current_setting('lock_timeout') || current_setting('statement_timeout')`,
		"mariadb":  `SELECT CONCAT(@@innodb_lock_wait_timeout, '/', @@max_statement_time)`,
		"mysql":    `SELECT CONCAT(@@innodb_lock_wait_timeout, '/', @@max_execution_time)`,
		"sqlite":   `PRAGMA busy_timeout`,
	}[e.Name]
	var s string
	ok(t, tx.QueryRowContext(t.Context(), query).Scan(&s))
	return s
}

func TestTheLimitOnWaitingIsGivenBack(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		const timeout = 300 * time.Millisecond
		l := newLocker(t, e, forupdate.Timeout(timeout))
		conn, err := e.DB.Conn(t.Context())
		ok(t, err)
		defer conn.Close()
		set := `SET SESSION innodb_lock_wait_timeout = 17`
		if e.Name == "postgres" {
			set = `SET lock_timeout = '17s'; SET statement_timeout = '18s'`
		}
		_, err = conn.ExecContext(t.Context(), set)
		ok(t, err)
		before := settings(t, e, conn)
		same := func(when string, tx forupdate.Tx) {
			t.Helper()
			if now := settings(t, e, tx); now != before {
				t.Errorf("%s: the session's limits are %s, were %s", when, now, before)
			}
		}
		other := begin(t, e)
		ok(t, l.Lock(t.Context(), other, "held"))
		for range 2 {
			tx, err := conn.BeginTx(t.Context(), nil)
			ok(t, err)
			ok(t, l.Lock(t.Context(), tx, "free"))
			same("after a lock", tx)
			began := time.Now()
			wantIs(t, l.Lock(t.Context(), tx, "held"), lease.ErrHeld)
			// The session's own limit is 17 s.
			if took := time.Since(began); took < timeout-10*time.Millisecond || took > 10*time.Second {
				t.Errorf("waited for %s, was to wait for %s", took, timeout)
			}
			if e.Name != "postgres" { // where the transaction is over
				same("after a timeout", tx)
				ok(t, l.Lock(t.Context(), tx, "free as well"))
			}
			ok(t, tx.Rollback())
			same("after a rollback", conn)
		}
		tx, err := conn.BeginTx(t.Context(), nil)
		ok(t, err)
		ok(t, l.Lock(t.Context(), tx, "free"))
		ok(t, tx.Commit())
		same("after a commit", conn)
	})
}

// A ctx that ends before the timeout ends the waiting in good order, with the connection still
// there.
func TestAContextThatEndsSoonerBoundsTheWaiting(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		l := newLocker(t, e)
		ok(t, l.Lock(t.Context(), begin(t, e), "k"))
		// A tenth of the time is left for the answer, which a busy machine may not be given by then.
		for lasts := 2 * time.Second; ; lasts *= 2 {
			second := begin(t, e)
			ctx, cancel := context.WithTimeout(t.Context(), lasts)
			err := l.Lock(ctx, second, "k")
			cancel()
			if errors.Is(err, context.DeadlineExceeded) && lasts < patience {
				continue
			}
			wantIs(t, err, lease.ErrHeld)
			ok(t, second.Rollback())
			return
		}
	})
}

// A pool that the application has used up cannot keep a locker from making a row.
func TestAnExhaustedPoolDoesNotHoldALockUp(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		db := e.Pool(t)
		db.SetMaxOpenConns(3)
		l, err := forupdate.NewLocker(db, e.Dialect)
		ok(t, err)
		defer l.Close()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var wg sync.WaitGroup
		for w := range 6 {
			wg.Go(func() {
				tx, err := db.BeginTx(ctx, nil)
				if err == nil {
					err = errors.Join(l.Lock(ctx, tx, fmt.Sprint("new ", w)), tx.Commit())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestAStoresLockIsALockersToo(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		s := open(t, e.DB, e)
		l, err := s.Locker()
		ok(t, err)
		held := hold(t, s, "k")
		tx := begin(t, e)
		wantIs(t, l.TryLock(t.Context(), tx, "k"), lease.ErrHeld)
		release(t, s, held)
		ok(t, l.TryLock(t.Context(), tx, "k"))
		if a := ask(t, s, "k"); a.Granted {
			t.Error("the store was granted what a transaction has locked")
		}
		ok(t, tx.Commit())
		release(t, s, hold(t, s, "k"))
	})
}

// badTx fails the test when anything is sent.
type badTx struct{ testing.TB }

func (b badTx) Rollback() error { b.Fatal("rolled back"); return nil }

func (b badTx) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	b.Fatal("sent")
	return nil, nil
}

func (b badTx) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	b.Fatal("sent")
	return nil, nil
}

func (b badTx) QueryRowContext(context.Context, string, ...any) *sql.Row {
	b.Fatal("sent")
	return nil
}

func TestBadInputIsRefusedBeforeAnythingIsSent(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		l, ctx, tx := newLocker(t, e), t.Context(), badTx{t}
		rows := forupdate.Rows{Table: "accounts", Key: "id"}
		var none *sql.Tx
		var jobs []struct{ ID int }
		for name, err := range map[string]error{
			"no transaction":        l.Lock(ctx, nil, "k"),
			"a nil transaction":     l.TryLock(ctx, none, "k"),
			"a nil one for rows":    l.LockRows(ctx, none, rows, 1),
			"a nil one to pick in":  l.Pick(ctx, nil, &jobs, forupdate.Queue{Table: "jobs", Limit: 1}),
			"a table's name":        l.LockRows(ctx, tx, forupdate.Rows{Table: `a"; DROP`, Key: "id"}, 1),
			"a column's name":       l.TryLockRows(ctx, tx, forupdate.Rows{Table: "a", Key: "id = id"}, 1),
			"a queue's name":        l.Pick(ctx, tx, &jobs, forupdate.Queue{Table: "", Limit: 1}),
			"no limit":              l.Pick(ctx, tx, &jobs, forupdate.Queue{Table: "jobs"}),
			"no pointer":            l.Pick(ctx, tx, jobs, forupdate.Queue{Table: "jobs", Limit: 1}),
			"a pointer to no slice": l.Pick(ctx, tx, new(int), forupdate.Queue{Table: "jobs", Limit: 1}),
			"an empty struct":       l.Pick(ctx, tx, new([]struct{}), forupdate.Queue{Table: "jobs", Limit: 1}),
		} {
			if !errors.Is(err, lease.ErrConfig) {
				t.Errorf("%s: got %v, want lease.ErrConfig", name, err)
			}
		}
		for name, err := range map[string]error{
			"no key": l.Lock(ctx, tx), "an empty key": l.Lock(ctx, tx, "a", ""), "a reserved key": l.TryLock(ctx, tx, lease.Reserved+"x"), "no row": l.LockRows(ctx, tx, rows),
		} {
			if !errors.Is(err, lease.ErrInvalidKey) {
				t.Errorf("%s: got %v, want lease.ErrInvalidKey", name, err)
			}
		}
	})
}

func TestWhatTheTransactionIsNotIsExplained(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		l := newLocker(t, e)
		over := begin(t, e)
		ok(t, over.Commit())
		wantIs(t, l.Lock(t.Context(), over, "k"), sql.ErrTxDone)
		wantIs(t, l.LockRows(t.Context(), over, forupdate.Rows{Table: "x", Key: "id"}, 1), sql.ErrTxDone)
		tx := begin(t, e)
		wantIs(t, l.LockRows(t.Context(), tx, forupdate.Rows{Table: "no_such_table", Key: "id"}, 1), lease.ErrTable)
		ok(t, tx.Rollback())
		tx = begin(t, e)
		wantIs(t, l.LockRows(t.Context(), tx, forupdate.Rows{Table: e.Dialect.Names().Prefix + "rowlock_meta", Key: "no_such_column"}, 1), lease.ErrTable)
	})
}
