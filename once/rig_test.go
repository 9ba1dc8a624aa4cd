package once_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/once"
)

// patience bounds what must come to an end.
const patience = 30 * time.Second

// rig is a database with a table of effects, each of which is a row that says whose it is: nothing
// keeps two apart.
type rig struct {
	*testdb.Env
	effects string
}

func newRig(tb testing.TB, e *testdb.Env) *rig {
	tb.Helper()
	r := &rig{e, e.Dialect.Names().Prefix + "effects"}
	e.Exec(tb, `CREATE TABLE `+r.effects+` (name VARCHAR(100) NOT NULL, n INT NOT NULL)`)
	tb.Cleanup(func() { e.Exec(tb, `DROP TABLE `+r.effects) })
	return r
}

func each(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) { f(t, newRig(t, e)) })
}

func (r *rig) open(tb testing.TB, db dialect.Pool, cfg once.Config) *once.Once {
	tb.Helper()
	o, err := once.New(db, r.Dialect, &cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = o.Close() })
	return o
}

// once returns one without a background, so that only what a test does is done.
func (r *rig) once(tb testing.TB) *once.Once {
	tb.Helper()
	return r.open(tb, r.DB, once.Config{Reap: -1})
}

// effect has one effect and returns value.
func (r *rig) effect(name, value string) once.Func {
	return func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		if _, err := tx.ExecContext(ctx, r.SQL(`INSERT INTO `+r.effects+` (name, n) VALUES (?, 1)`), name); err != nil {
			return nil, err
		}
		return []byte(value), nil
	}
}

// then does more after another function.
func then(f once.Func, more func() error) once.Func {
	return func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		value, err := f(ctx, tx)
		if err == nil {
			err = more()
		}
		return value, err
	}
}

func (r *rig) count(tb testing.TB, query string, args ...any) (n int) {
	tb.Helper()
	if err := r.DB.QueryRowContext(context.Background(), r.SQL(query), args...).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}

func (r *rig) wantEffects(tb testing.TB, name string, want int) {
	tb.Helper()
	if n := r.count(tb, `SELECT COUNT(*) FROM `+r.effects+` WHERE name = ?`, name); n != want {
		tb.Errorf("%q has %d effects, want %d", name, n, want)
	}
}

func (r *rig) wantRows(tb testing.TB, want int) {
	tb.Helper()
	if n := r.count(tb, `SELECT COUNT(*) FROM {rowlock_once}`); n != want {
		tb.Errorf("there are %d rows, want %d", n, want)
	}
}

// expire has every key's time pass.
func (r *rig) expire(tb testing.TB) {
	tb.Helper()
	r.Exec(tb, `UPDATE {rowlock_once} SET expires_at = {now} - {second}`)
}

func do(tb testing.TB, o *once.Once, req once.Request, f once.Func) once.Result {
	tb.Helper()
	res, err := o.Do(tb.Context(), req, f)
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

func want(tb testing.TB, got once.Result, value string, replayed bool) {
	tb.Helper()
	if string(got.Value) != value || got.Replayed != replayed {
		tb.Errorf("got %q, replayed %t; want %q, %t", got.Value, got.Replayed, value, replayed)
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

// never is for a function that must not be run.
func never(tb testing.TB) once.Func {
	return func(context.Context, *sql.Tx) ([]byte, error) {
		tb.Error("the function was run")
		return nil, nil
	}
}

// inParallel runs f n times at once and waits.
func inParallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
