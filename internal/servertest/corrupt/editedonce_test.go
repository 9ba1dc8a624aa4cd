package corrupt

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
)

// onces is without sweeps of its own.
func onces(tb testing.TB, e *testdb.Env) *once.Once {
	o, err := once.New(e.Pool(tb), e.Dialect, &once.Config{
		Reap: -1, MaxResult: 1 << 10, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = o.Close() })
	return o
}

// Such a row is neither live nor expired: a claim would look at it for the whole of Config.Wait,
// and then call the database busy.
func TestAnEffectWithoutAnExpiryIsCorrupt(t *testing.T) {
	e := loose(t)
	e.Exec(t, `INSERT INTO {rowlock_once} (tenant, key, fingerprint, made_at) VALUES (x'', ?, x'', 0)`, []byte("k"))
	_, err := onces(t, e).Do(t.Context(), once.Request{Key: "k"}, func(context.Context, *sql.Tx) ([]byte, error) {
		t.Error("it has run")
		return nil, nil
	})
	if !errors.Is(err, lease.ErrCorrupt) {
		t.Errorf("%v, want ErrCorrupt", err)
	}
}
