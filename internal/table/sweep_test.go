package table_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A sweep reads pages of 1,000 rows in the order of keys, and goes on behind the last of each.
func TestASweepReadsEveryPage(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		keys := []string{"a", "z"}
		for i := range 2100 {
			keys = append(keys, fmt.Sprintf("b/%04d", i))
		}
		if _, err := r.clean.Acquire(t.Context(), requests(keys...)); err != nil {
			t.Fatal(err)
		}
		dead := []string{"a", "b/1050", "z"}
		for _, key := range dead {
			e.Expire(t, key)
		}
		removed, err := r.store.Sweep(t.Context(), lease.SweepOptions{})
		if removed != int64(len(dead)) || err != nil {
			t.Errorf("a sweep removed %d rows, %v; want %q", removed, err, dead)
		}
	})
}

// Members of a group that is none, as another hand may leave them, kept a sweep from its end, and
// all dead members behind them from theirs.
func TestASweepPassesMembersOfNoGroup(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		for n := range 5 {
			e.Exec(t, `INSERT INTO {rowlock_member} ({key}, reader_group, owner, joined_at, expires_at, note)
				VALUES (?, ?, ?, {now} - {second}, {now} - {second}, '')`,
				fmt.Appendf(nil, "k%d", n), []byte("0123456789abcdef"), []byte("fedcba9876543210"))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := r.store.Sweep(ctx, lease.SweepOptions{Batch: 2}); err != nil {
			t.Error(err)
		}
		var left int
		row := e.DB.QueryRowContext(t.Context(), e.SQL(`SELECT count(*) FROM {rowlock_member}`))
		if err := row.Scan(&left); err != nil || left > 0 {
			t.Errorf("%d members are left (%v)", left, err)
		}
	})
}

// A transaction that has one floor locked keeps the rows that count from it, and no others. The
// walk meets that floor on two pages.
func TestASweepPassesAFloorThatIsLocked(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Dialect.OneWriter {
			t.Skip("a file has one writer: what is locked is all of it")
		}
		const locked = 7
		r := newRig(t, e, adapter.Update, 2)
		var dead []string
		for _, page := range []string{"a", "z"} {
			dead = append(dead, keyOf(page, func(b int) bool { return b == locked }))
			dead = append(dead, keyOf(page, func(b int) bool { return b > locked }))
		}
		keys := slices.Clone(dead)
		for i := range 1100 {
			keys = append(keys, fmt.Sprintf("b/%04d", i))
		}
		if _, err := r.clean.Acquire(t.Context(), requests(keys...)); err != nil {
			t.Fatal(err)
		}
		for _, key := range dead {
			e.Expire(t, key)
		}
		tx, err := e.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		lock := fmt.Sprintf(`SELECT floor FROM {rowlock_floor} WHERE bucket = %d FOR UPDATE`, locked)
		if _, err := tx.ExecContext(t.Context(), e.SQL(lock)); err != nil {
			t.Fatal(err)
		}
		removed, err := r.store.Sweep(t.Context(), lease.SweepOptions{Batch: 1})
		if removed != 2 || !errors.Is(err, lease.ErrBusy) {
			t.Errorf("a sweep removed %d rows, %v; want 2", removed, err)
		}
	})
}

// keyOf returns a key that begins with start and has a bucket that is wanted.
func keyOf(start string, wanted func(bucket int) bool) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint(start, i); wanted(lease.Bucket(key)) {
			return key
		}
	}
}
