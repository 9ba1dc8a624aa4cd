package pair

import (
	"context"
	"log/slog"
	"runtime"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// most is how many objects a pair may allocate in the whole process, by database, and spare what the
// race detector adds to it.
var (
	most  = map[string]float64{"postgres": 30, "mariadb": 46, "mysql": 52, "sqlite": 68}
	spare = map[bool]float64{true: 8}
)

func TestATryLockAndItsUnlockAllocateLittle(t *testing.T) {
	testdb.InTurn(t, func(t *testing.T, e *testdb.Env) {
		limit, ok := most[e.Name]
		if !ok {
			t.Skip("no bound is known")
		}
		ctx := context.Background()
		pair := pairOf(t, e)
		for range 50 { // statements are prepared, and memory that is kept grows
			pair(ctx)
		}
		const pairs = 200
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range pairs {
			pair(ctx)
		}
		runtime.ReadMemStats(&after)
		each := float64(after.Mallocs-before.Mallocs) / pairs
		t.Logf("%.1f objects and %.0f bytes", each, float64(after.TotalAlloc-before.TotalAlloc)/pairs)
		if limit += spare[raced]; each > limit {
			t.Errorf("a pair allocates %.1f objects, may allocate %.0f", each, limit)
		}
	})
}

func pairOf(t *testing.T, e *testdb.Env) func(context.Context) {
	c, err := rowlock.Open(e.Pool(t), e.Dialect, &rowlock.Config{
		Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return func(ctx context.Context) {
		l, err := c.TryLock(ctx, "pair")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
