package bed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/once"
)

// Run tests every promise in transactions of s.
func Run(t *testing.T, d Database, s Stack) {
	r := run{d, s}
	t.Run("a fenced write is committed", r.fenced)
	t.Run("DoTxOn commits what the function wrote, with the release", r.section)
	t.Run("an outdated token is refused and the write rolled back", r.outdated)
	t.Run("UnlockTx frees the key with the commit", r.unlockTx)
	t.Run("UnlockTx that is rolled back frees nothing", r.unlockTxRolledBack)
	t.Run("Unlock inside the open transaction is refused", r.unlockInside)
	t.Run("once has one effect, and none if it fails", r.once)
	t.Run("a row lock lasts as long as the transaction", r.rowLock)
}

// RunWithoutFence is the part of Run that needs no fence, which a savepoint of PostgreSQL refuses.
func RunWithoutFence(t *testing.T, d Database, s Stack) {
	r := run{d, s}
	t.Run("once has one effect, and none if it fails", r.once)
	t.Run("a row lock lasts as long as the transaction", r.rowLock)
}

type run struct {
	d Database
	s Stack
}

func (r run) client(t *testing.T) *rowlock.Client {
	t.Helper()
	c, err := rowlock.Open(r.s.Pool, r.s.Dialect, &rowlock.Config{Connections: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (r run) lock(t *testing.T, c *rowlock.Client, key string) *rowlock.Lock {
	t.Helper()
	l, err := c.TryLock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Unlock(context.Background()) })
	return l
}

func (r run) begin(t *testing.T) Tx {
	t.Helper()
	tx, err := r.s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r run) wantBalance(t *testing.T, want int64) {
	t.Helper()
	if got := r.d.Balance(t); got != want {
		t.Errorf("the balance is %d, want %d", got, want)
	}
}

func (r run) fenced(t *testing.T) {
	before := r.d.Balance(t)
	l := r.lock(t, r.client(t), "fenced")
	tx := r.begin(t)
	ok(t, tx.Fence(t.Context(), l))
	ok(t, tx.Deposit(t.Context(), 1))
	ok(t, tx.Commit())
	r.wantBalance(t, before+1)
	ok(t, l.Unlock(t.Context()))
}

func (r run) section(t *testing.T) {
	begin := func(ctx context.Context, _ *sql.TxOptions) (Tx, *sql.Tx, error) {
		tx, err := r.s.Begin(ctx)
		return tx, tx.SQL, err
	}
	if first := r.begin(t); first.SQL == nil {
		t.Skip("postgres.DoTx is for pgx")
	} else {
		ok(t, first.Rollback())
	}
	before, c := r.d.Balance(t), r.client(t)
	ok(t, rowlock.DoTxOn(t.Context(), c, begin, "section", func(ctx context.Context, tx Tx) error {
		return tx.Deposit(ctx, 1)
	}))
	r.wantBalance(t, before+1)
	failed := errors.New("of the test")
	err := rowlock.DoTxOn(t.Context(), c, begin, "section", func(ctx context.Context, tx Tx) error {
		ok(t, tx.Deposit(ctx, 1))
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v, want what the function returned", err)
	}
	r.wantBalance(t, before+1)
	ok(t, r.lock(t, c, "section").Unlock(t.Context()))
}

func (r run) outdated(t *testing.T) {
	before := r.d.Balance(t)
	stopped, other := r.lock(t, r.client(t), "outdated"), r.client(t)
	r.d.Expire(t, "outdated")
	taken := r.lock(t, other, "outdated")
	tx := r.begin(t)
	ok(t, tx.Deposit(t.Context(), 1))
	err := tx.Fence(t.Context(), stopped)
	if !errors.Is(err, rowlock.ErrFenced) || errors.Is(err, rowlock.ErrForeignTx) {
		t.Errorf("Fence with token %d, after %d was granted: %v", stopped.Token(), taken.Token(), err)
	}
	ok(t, tx.Rollback())
	r.wantBalance(t, before)
}

func (r run) unlockTx(t *testing.T) {
	c := r.client(t)
	l := r.lock(t, c, "unlock")
	tx := r.begin(t)
	ok(t, tx.UnlockTx(t.Context(), l))
	ok(t, tx.Commit())
	ok(t, r.lock(t, c, "unlock").Unlock(t.Context()))
	ok(t, l.Unlock(t.Context()))
}

func (r run) unlockTxRolledBack(t *testing.T) {
	c := r.client(t)
	l := r.lock(t, c, "rolled back")
	tx := r.begin(t)
	ok(t, tx.UnlockTx(t.Context(), l))
	ok(t, tx.Rollback())
	if _, err := c.TryLock(t.Context(), "rolled back"); !errors.Is(err, rowlock.ErrHeld) {
		t.Errorf("TryLock: %v, want %v", err, rowlock.ErrHeld)
	}
	ok(t, l.Unlock(t.Context()))
}

func (r run) unlockInside(t *testing.T) {
	const stuck = "its row is locked by a transaction that has fenced this lock and has not ended"
	c := r.client(t)
	for n := range 5 {
		took, err := r.unlockWhileOpen(t, c, fmt.Sprint("inside/", n))
		if !errors.Is(err, rowlock.ErrUnknown) {
			t.Fatalf("Unlock: %v", err)
		}
		told, guess := strings.Contains(err.Error(), stuck), strings.Contains(err.Error(), "it seems")
		if r.s.Guesses && !told || !guess && took > 2*time.Second { // as long as a release
			continue // on a server too busy to answer in time
		}
		if !told || guess != r.s.Guesses {
			t.Errorf("after %s: %v", took, err)
		}
		return
	}
	t.Error("Unlock never tells in time of the open transaction")
}

func (r run) unlockWhileOpen(t *testing.T, c *rowlock.Client, key string) (time.Duration, error) {
	l := r.lock(t, c, key)
	tx := r.begin(t)
	ok(t, tx.Fence(t.Context(), l))
	began := time.Now()
	err := l.Unlock(t.Context())
	took := time.Since(began)
	ok(t, tx.Rollback())
	return took, err
}

func (r run) once(t *testing.T) {
	before := r.d.Balance(t)
	o, err := once.New(r.s.Pool, r.s.Dialect, nil)
	ok(t, err)
	defer o.Close()
	request := once.Request{Key: "deposit/1"}
	failed := errors.New("failed")
	for n, f := range []struct{ effect, result error }{{failed, failed}, {nil, nil}, {nil, nil}} {
		tx := r.begin(t)
		res, err := tx.Once(t.Context(), o, request, func(ctx context.Context) ([]byte, error) {
			if err := tx.Deposit(ctx, 10); err != nil {
				return nil, err
			}
			return []byte("done"), f.effect
		})
		if !errors.Is(err, f.result) {
			t.Fatal(err)
		}
		if f.result != nil {
			_ = tx.Rollback() // as In has done
			r.wantBalance(t, before)
			continue
		}
		ok(t, tx.Commit())
		if string(res.Value) != "done" || res.Replayed != (n == 2) {
			t.Errorf("call %d: %q, replayed: %v", n, res.Value, res.Replayed)
		}
	}
	r.wantBalance(t, before+10)
}

func (r run) rowLock(t *testing.T) {
	l, err := forupdate.NewLocker(r.s.Pool, r.s.Dialect)
	ok(t, err)
	defer l.Close()
	first := r.begin(t)
	ok(t, first.TryLock(t.Context(), l, "row"))
	if r.d.Name != "sqlite" { // whose second transaction is busy with its BEGIN
		second := r.begin(t)
		if err := second.TryLock(t.Context(), l, "row"); !errors.Is(err, rowlock.ErrHeld) {
			t.Errorf("TryLock of what another transaction has locked: %v", err)
		}
		ok(t, second.Rollback())
	}
	ok(t, first.Rollback())
	third := r.begin(t)
	ok(t, third.TryLock(t.Context(), l, "row"))
	ok(t, third.Rollback())
}
