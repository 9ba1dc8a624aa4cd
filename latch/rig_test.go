package latch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/latch"
)

// patience bounds what must come to an end.
const patience = 30 * time.Second

// rig is a database with the tables of latches.
type rig struct{ *testdb.Env }

func each(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) { f(t, &rig{e}) })
}

func (r *rig) open(tb testing.TB, db dialect.DB, cfg latch.Config) *latch.Latches {
	tb.Helper()
	s, err := latch.New(db, r.Dialect, &cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// process returns Latches as another process would have them, without a background.
func (r *rig) process(tb testing.TB) *latch.Latches {
	tb.Helper()
	return r.open(tb, r.Pool(tb), latch.Config{Sweep: -1, Connections: 1})
}

func opened(tb testing.TB, s *latch.Latches, name string, parties int) *latch.Latch {
	tb.Helper()
	l, err := s.Open(tb.Context(), name, parties)
	if err != nil {
		tb.Fatal(err)
	}
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
			tb.Errorf("got %v, want %v", err, target)
		}
	}
}

func wantCount(tb testing.TB, l *latch.Latch, want int) {
	tb.Helper()
	if n, err := l.Count(tb.Context()); err != nil || n != want {
		tb.Errorf("%d parties have yet to count down, want %d; %v", n, want, err)
	}
}

// notOpen fails the test if the latch is open.
func notOpen(tb testing.TB, l *latch.Latch) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Millisecond)
	defer cancel()
	wantIs(tb, l.Await(ctx), context.DeadlineExceeded)
}

func soon(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	tb.Cleanup(cancel)
	return ctx
}

// inParallel runs f n times at once and waits.
func inParallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

func (r *rig) count(tb testing.TB, query string, args ...any) (n int) {
	tb.Helper()
	ok(tb, r.DB.QueryRowContext(context.Background(), r.SQL(query), args...).Scan(&n))
	return n
}

// expire has the retention of everything pass.
func (r *rig) expire(tb testing.TB) {
	tb.Helper()
	r.Exec(tb, `UPDATE {rowlock_latch} SET expires_at = {now} - {second}`)
}

// tryOpen opens on a pool that may lose answers.
func (r *rig) tryOpen(tb testing.TB, db dialect.DB, cfg latch.Config) (s *latch.Latches) {
	tb.Helper()
	var err error
	for range 50 {
		if s, err = latch.New(db, r.Dialect, &cfg); err == nil {
			return s
		}
	}
	tb.Fatal(err)
	return nil
}
