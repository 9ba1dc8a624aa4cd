package once_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
)

var errBusy = lease.ErrBusy

// impatient is the DSN of connections that do not wait for SQLite's write lock, and begin as a
// reader.
func (r *rig) impatient() string {
	return strings.NewReplacer("busy_timeout%285000%29", "busy_timeout%2810%29", "&_txlock=immediate", "").Replace(r.Source)
}

func (r *rig) begin(tb testing.TB, opts *sql.TxOptions) *sql.Tx {
	tb.Helper()
	tx, err := r.DB.BeginTx(context.Background(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func TestWithinTheCallersTransactionAllOfItIsHis(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		req := once.Request{Key: "key", Fingerprint: once.Fingerprint()}
		for _, commit := range []bool{false, true} {
			tx := r.begin(t, nil)
			res, err := o.In(t.Context(), tx, req, r.effect("e", "value"))
			if err != nil {
				t.Fatal(err)
			}
			want(t, res, "value", false)
			res, err = o.In(t.Context(), tx, req, never(t))
			if err != nil {
				t.Fatal(err)
			}
			want(t, res, "value", true) // within the same transaction
			if commit {
				err = tx.Commit()
			} else {
				err = tx.Rollback()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		r.wantEffects(t, "e", 1)
		want(t, do(t, o, req, never(t)), "value", true)
		tx := r.begin(t, nil)
		res, err := o.In(t.Context(), tx, req, never(t))
		if err != nil {
			t.Fatal(err)
		}
		want(t, res, "value", true)
		_, err = o.In(t.Context(), tx, once.Request{Key: "key"}, never(t))
		wantIs(t, err, once.ErrMismatch)
		if _, err := tx.Exec(r.SQL(`INSERT INTO `+r.effects+` (name, n) VALUES (?, 1)`), "after"); err != nil {
			t.Errorf("the transaction is of no more use: %v", err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	})
}

// Who commits all the same would keep half of it, as done.
func TestWhatFailedWithinCannotBeCommitted(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.open(t, r.DB, once.Config{MaxResult: 10, Reap: -1})
		failed := errors.New("no")
		for name, f := range map[string]once.Func{
			"error": then(r.effect("e", ""), func() error { return failed }),
			"large": r.effect("e", "12345678901"),
			"panic": then(r.effect("e", ""), func() error { panic("help") }),
		} {
			tx := r.begin(t, nil)
			func() {
				defer func() { _ = recover() }()
				if _, err := o.In(t.Context(), tx, once.Request{Key: "key"}, f); err == nil || name == "error" && err != failed {
					t.Errorf("%s: got %v", name, err)
				}
			}()
			wantIs(t, tx.Commit(), sql.ErrTxDone)
		}
		r.wantRows(t, 0)
		r.wantEffects(t, "e", 0)
	})
}

func TestAFinishedTransactionIsRefused(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		tx := r.begin(t, nil)
		_ = tx.Rollback()
		_, err := r.once(t).In(t.Context(), tx, once.Request{Key: "key"}, never(t))
		wantIs(t, err, sql.ErrTxDone)
	})
}

// A transaction that has read before sees what was done since, or is told to begin anew; it does
// not do it twice.
func TestATransactionThatHasReadBefore(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		for i, level := range r.levels() {
			name := string(rune('a' + i))
			var tx *sql.Tx
			if r.Name == "sqlite" {
				db, err := sql.Open("sqlite", r.impatient())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				if tx, err = db.Begin(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = tx.Rollback() })
			} else {
				tx = r.begin(t, level)
			}
			var n int
			if err := tx.QueryRow(r.SQL(`SELECT COUNT(*) FROM {rowlock_once}`)).Scan(&n); err != nil {
				t.Fatal(err)
			}
			do(t, o, once.Request{Key: name}, r.effect(name, "value"))
			res, err := o.In(t.Context(), tx, once.Request{Key: name}, never(t))
			// MySQL's locking reads show the latest version.
			again := errors.Is(err, lease.ErrBusy) && r.Name != "mysql"
			if err != nil && !again || err == nil && string(res.Value) != "value" {
				t.Errorf("%v: got %+v, %v", level, res, err)
			}
			_ = tx.Rollback()
			r.wantEffects(t, name, 1)
		}
	})
}

// levels are the isolations a transaction may have whose reads lock nothing.
func (r *rig) levels() []*sql.TxOptions {
	if r.Name == "sqlite" {
		return []*sql.TxOptions{nil}
	}
	all := []*sql.TxOptions{nil, {Isolation: sql.LevelReadCommitted}, {Isolation: sql.LevelRepeatableRead}}
	if r.Name == "postgres" {
		all = append(all, &sql.TxOptions{Isolation: sql.LevelSerializable})
	}
	return all
}

// The bound on the claim's wait is the claim's alone.
func TestTheCallersLockTimeoutIsHis(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		query := map[string]string{
			"postgres": `SELECT current_setting('lock_timeout')`, "mysql": `SELECT @@innodb_lock_wait_timeout`, "mariadb": `SELECT @@innodb_lock_wait_timeout`,
			"sqlite": `SELECT timeout FROM pragma_busy_timeout`,
		}[r.Name]
		o := r.once(t)
		tx := r.begin(t, nil)
		var before string
		if err := tx.QueryRow(query).Scan(&before); err != nil {
			t.Fatal(err)
		}
		for range 2 { // made, and found
			if _, err := o.In(t.Context(), tx, once.Request{Key: "key"}, r.effect("e", "")); err != nil {
				t.Fatal(err)
			}
			var after string
			if err := tx.QueryRow(query).Scan(&after); err != nil || after != before {
				t.Errorf("it was %s and is %s, %v", before, after, err)
			}
		}
	})
}

// One in flight is waited for in the database, for so long or not at all. The transaction that has
// waited must be discarded.
func TestWithinTheCallersTransactionOneInFlightIsSaid(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name == "sqlite" {
			t.Skip("the second transaction is busy with its BEGIN")
		}
		busy := r.inFlight(t, r.once(t), once.Request{Key: "key"})
		for _, cfg := range []once.Config{{Wait: 200 * time.Millisecond, Reap: -1}, {NoWait: true, Reap: -1}} {
			o := r.open(t, r.Pool(t), cfg)
			wantWaited(t, cfg, func() error {
				tx := r.begin(t, nil)
				defer func() { _ = tx.Rollback() }()
				_, err := o.In(t.Context(), tx, once.Request{Key: "key"}, never(t))
				return err
			})
		}
		busy.end()
		r.wantEffects(t, "key", 1)
	})
}

func TestWithinTheCallersTransactionAnExpiredKeyIsTakenOver(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		do(t, o, once.Request{Key: "key"}, r.effect("e", "first"))
		r.expire(t)
		tx := r.begin(t, nil)
		res, err := o.In(t.Context(), tx, once.Request{Key: "key"}, r.effect("e", "second"))
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
		want(t, res, "second", false)
		want(t, do(t, o, once.Request{Key: "key"}, never(t)), "second", true)
		r.wantEffects(t, "e", 2)
	})
}

// Who does not wait must not have keys beside each other lock each other out: to look for a row
// that is not there can.
func TestWithinTheCallersTransactionsFreshKeysDoNotCollide(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.open(t, r.DB, once.Config{NoWait: true, Reap: -1})
		for round := range 5 {
			inParallel(4, func(i int) {
				tx, err := r.DB.BeginTx(t.Context(), nil)
				if err == nil {
					defer func() { _ = tx.Rollback() }()
					_, err = o.In(t.Context(), tx, once.Request{Key: fmt.Sprint("key", round, i)}, r.effect("e", "value"))
				}
				if err == nil {
					err = tx.Commit()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		r.wantEffects(t, "e", 20)
	})
}
