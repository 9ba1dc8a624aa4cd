package hazard

import (
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMinHoldInTheDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		c, err := rowlock.Open(e.DB, e.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l := clienttest.Take(t, c, "k", rowlock.MinHold(time.Hour))
		tx, err := e.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		clienttest.WantIs(t, "UnlockTx", l.UnlockTx(t.Context(), tx), rowlock.ErrConfig)
		_ = tx.Rollback()
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		var held *rowlock.HeldError
		if _, err := c.TryLock(t.Context(), "k"); !errors.As(err, &held) ||
			held.Remaining < 59*time.Minute || held.Remaining > time.Hour {
			t.Errorf("TryLock after unlock: %v", err)
		}
		e.Expire(t, "k")
		clienttest.Take(t, c, "k")
	})
}
