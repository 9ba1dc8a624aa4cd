package rowlock_test

import (
	"context"
	"errors"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"testing"
)

func TestSmoke(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		c, err := rowlock.Open(e.DB, e.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx := context.Background()
		l, err := c.TryLock(ctx, "a", rowlock.Note("me"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.TryLock(ctx, "a")
		t.Log(err)
		if !errors.Is(err, rowlock.ErrHeld) {
			t.Fatal(err)
		}
		tx, err := e.DB.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Fence(ctx, tx); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
		t.Log(l.Token())
		if err := l.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
		l, err = c.TryLock(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		t.Log(l.Token())
	})
}
