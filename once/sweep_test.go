package once_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/once"
)

func (r *rig) fill(tb testing.TB, prefix string, n int) {
	tb.Helper()
	o := r.once(tb)
	for i := range n {
		do(tb, o, once.Request{Key: fmt.Sprint(prefix, i)}, func(context.Context, *sql.Tx) ([]byte, error) { return nil, nil })
	}
}

func TestASweepRemovesWhatHasExpired(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.once(t)
		r.fill(t, "old", 25)
		r.expire(t)
		r.fill(t, "new", 5)
		if n, err := o.Sweep(t.Context(), 10); n != 25 || err != nil {
			t.Errorf("removed %d, %v; want 25", n, err)
		}
		r.wantRows(t, 5)
		if n, err := o.Sweep(t.Context(), 0); n != 0 || err != nil {
			t.Errorf("removed %d, %v", n, err)
		}
	})
}

func TestSeveralSweepAtOnce(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.fill(t, "old", 60)
		r.expire(t)
		o, other := r.once(t), r.open(t, r.Pool(t), once.Config{Reap: -1})
		var removed atomic.Int64
		inParallel(4, func(i int) {
			n, err := []*once.Once{o, other}[i%2].Sweep(t.Context(), 7)
			if err != nil {
				t.Error(err)
			}
			removed.Add(n)
		})
		// A batch of which others have a part locked is not full, and is the last: the others go
		// on.
		left := r.count(t, `SELECT COUNT(*) FROM {rowlock_once}`)
		if int(removed.Load())+left != 60 {
			t.Errorf("%d removed, %d left", removed.Load(), left)
		}
		if _, err := o.Sweep(t.Context(), 7); err != nil {
			t.Error(err)
		}
		r.wantRows(t, 0)
	})
}

// A sweep does not wait for a row that is being taken over.
func TestASweepLeavesOutWhatIsLocked(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name == "sqlite" {
			t.Skip("has one write lock for all")
		}
		o := r.once(t)
		r.fill(t, "old", 3)
		do(t, o, once.Request{Key: "key"}, r.effect("e", ""))
		r.expire(t)
		busy := r.inFlight(t, o, once.Request{Key: "key"})
		began := time.Now()
		if n, err := o.Sweep(t.Context(), 10); n != 3 || err != nil || time.Since(began) > patience/2 {
			t.Errorf("removed %d in %s, %v; want 3", n, time.Since(began), err)
		}
		busy.end()
		want(t, do(t, o, once.Request{Key: "key"}, never(t)), "value", true)
		r.wantRows(t, 1)
	})
}

func TestTheBackgroundSweeps(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.fill(t, "old", 3)
		r.expire(t)
		o := r.open(t, r.DB, once.Config{Reap: 20 * time.Millisecond})
		for end := time.Now().Add(patience); r.count(t, `SELECT COUNT(*) FROM {rowlock_once}`) > 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("nothing was swept")
			}
		}
		_ = o.Close()
	})
}

// Expired rows are found by the index, however many others there are.
func TestASweepUsesTheIndex(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		text := r.Dialect.Text("once-sweep")
		var args []any
		var explain string
		switch r.Name {
		case "sqlite":
			explain, args = `EXPLAIN QUERY PLAN `+text, []any{10}
		case "postgres":
			r.Exec(t, `INSERT INTO {rowlock_once} (key, made_at, expires_at) SELECT CAST(CAST(g AS text) AS bytea), now(), now() + interval '1 day' FROM generate_series(1, 5000) AS g`)
			r.Exec(t, `ANALYZE {rowlock_once}`)
			explain = `EXPLAIN ` + strings.Replace(text, "$1", "10", 1)
		default:
			explain = `EXPLAIN ` + strings.Replace(text, "LIMIT ?", "LIMIT 10", 1)
		}
		rows, err := r.DB.QueryContext(t.Context(), explain, args...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		columns, _ := rows.Columns()
		var plan strings.Builder
		for rows.Next() {
			line := make([]any, len(columns))
			for i := range line {
				line[i] = new(any)
			}
			if err := rows.Scan(line...); err != nil {
				t.Fatal(err)
			}
			for _, c := range line {
				v := *c.(*any)
				if b, ok := v.([]byte); ok {
					v = string(b)
				}
				fmt.Fprint(&plan, v, " ")
			}
			plan.WriteString("\n")
		}
		index := map[string]string{"sqlite": "rowlock_once_expiry", "postgres": "Index Cond: (expires_at <=", "mysql": "using expires_at", "mariadb": "range expires_at"}[r.Name]
		if !strings.Contains(plan.String(), index) {
			t.Errorf("no %q in\n%s", index, plan.String())
		}
	})
}
