package once_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock/once"
)

// Two functions that lock each other out: the database ends one of them, which is run again.
func TestAFunctionThatCollidedIsRunAgain(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name == "sqlite" {
			t.Skip("one writer at a time: no two functions are under way at once")
		}
		r.Exec(t, `INSERT INTO `+r.effects+` (name, n) VALUES ('a', 0), ('b', 0)`)
		// Without it InnoDB locks all rows.
		r.Exec(t, `CREATE INDEX `+r.effects+`_by_name ON `+r.effects+` (name)`)
		o := r.open(t, r.DB, eager())
		var runs atomic.Int64
		over := make(chan struct{}, 2) // for the one who is run again, who could lock the other out again
		var both sync.WaitGroup
		both.Add(2)
		inParallel(2, func(i int) {
			var first sync.Once
			order := [][]string{{"a", "b"}, {"b", "a"}}[i]
			do(t, o, once.Request{Key: fmt.Sprint(i)}, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
				if runs.Add(1) == 3 {
					<-over
				}
				for n, name := range order {
					if _, err := tx.ExecContext(ctx, r.SQL(`UPDATE `+r.effects+` SET n = n + 1 WHERE name = ?`), name); err != nil {
						return nil, fmt.Errorf("update: %w", err)
					}
					if n == 0 {
						first.Do(func() { both.Done(); both.Wait() })
					}
				}
				return []byte("done"), nil
			})
			over <- struct{}{}
		})
		if n := r.count(t, `SELECT SUM(n) FROM `+r.effects); n != 4 || runs.Load() != 3 {
			t.Errorf("%d effects by %d runs, want 4 by 3", n, runs.Load())
		}
	})
}

// InnoDB ends the victim's transaction and commits its later statements one by one. A function that
// hides the error has then written outside the request's transaction: that is told, and nothing is
// run again.
func TestADeadlockThatTheFunctionHidesIsTold(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Driver != "mysql" {
			t.Skip("PostgreSQL and SQLite refuse all that comes after the error")
		}
		r.Exec(t, `INSERT INTO `+r.effects+` (name, n) VALUES ('a', 0), ('b', 0)`)
		r.Exec(t, `CREATE INDEX `+r.effects+`_by_name ON `+r.effects+` (name)`)
		o := r.open(t, r.DB, eager())
		for _, value := range [][]byte{nil, []byte("done")} {
			var runs atomic.Int64
			var both sync.WaitGroup
			both.Add(2)
			errs := make([]error, 2)
			inParallel(2, func(i int) {
				order := [][]string{{"a", "b"}, {"b", "a"}}[i]
				key := fmt.Sprintf("%d of %q", i, value)
				_, errs[i] = o.Do(t.Context(), once.Request{Key: key}, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
					runs.Add(1)
					for n, name := range order {
						_, _ = tx.ExecContext(ctx, `UPDATE `+r.effects+` SET n = n + 1 WHERE name = '`+name+`'`)
						if n == 0 {
							both.Done()
							both.Wait()
						}
					}
					return value, nil
				})
			})
			if told := errs[0]; (told == nil) == (errs[1] == nil) {
				t.Errorf("result %q: %v and %v, want one error", value, errs[0], errs[1])
			} else if told = errors.Join(errs...); !strings.Contains(told.Error(), "lost the row it made") {
				t.Errorf("result %q: %v", value, told)
			}
			if runs.Load() != 2 {
				t.Errorf("result %q: %d runs, want 2", value, runs.Load())
			}
		}
	})
}

// It works whatever the connections' default isolation is: no answer depends on it.
func TestUnderEveryDefaultIsolation(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		for i, source := range r.isolated() {
			var all []*once.Once
			for range 2 {
				db, err := sql.Open(r.Driver, source)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				all = append(all, r.open(t, db, eager()))
			}
			for round := range 3 {
				name := fmt.Sprint("e", i, round)
				for range 2 { // fresh, then expired
					r.Exec(t, `DELETE FROM `+r.effects)
					inParallel(8, func(n int) {
						if res, err := all[n%2].Do(t.Context(), once.Request{Key: name}, r.effect(name, "value")); err != nil || string(res.Value) != "value" {
							t.Errorf("%s: got %+v, %v", source, res, err)
						}
					})
					r.wantEffects(t, name, 1)
					r.expire(t)
				}
			}
			if _, err := all[0].Sweep(t.Context(), 0); err != nil {
				t.Error(err)
			}
			r.wantRows(t, 0)
		}
	})
}

// isolated are the DSNs of connections with each default isolation; of SQLite, with transactions
// that begin as readers.
func (r *rig) isolated() (sources []string) {
	levels := []string{"read committed", "repeatable read", "serializable"}
	with := map[string]func(string) string{
		"sqlite": func(string) string { return strings.Replace(r.Source, "&_txlock=immediate", "", 1) },
		"postgres": func(l string) string {
			return r.Source + "&default_transaction_isolation=" + strings.ReplaceAll(l, " ", "%20")
		},
		"mysql": func(l string) string {
			return r.Source + "?transaction_isolation=%27" + strings.ToUpper(strings.ReplaceAll(l, " ", "-")) + "%27"
		},
		"mariadb": func(l string) string {
			return r.Source + "?tx_isolation=%27" + strings.ToUpper(strings.ReplaceAll(l, " ", "-")) + "%27"
		},
	}[r.Name]
	for _, l := range levels {
		sources = append(sources, with(l))
	}
	if r.Name == "sqlite" {
		return sources[:1]
	}
	return sources
}
