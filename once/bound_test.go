package once_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/once"
)

// A call's ctx and 2 s, and what a busy machine is late: whatever the server leaves unanswered, and
// from then on for ever. The hole swallows the operation's own request or reply without closing
// anything, as a firewall does that has forgotten the connection.
func TestDoOutlastsItsContextByAMomentWhateverIsNotAnswered(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some 10 s")
	}
	const within, spare = 3 * time.Second, 5 * time.Second
	each(t, func(t *testing.T, r *rig) {
		if r.Name == "sqlite" {
			t.Skip("there is no network to hang on")
		}
		fails := func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			_, _ = r.effect("e", "")(ctx, tx)
			return nil, errors.New("the function's own")
		}
		ops := countOps(t, r)
		for n := 1; n <= ops+1; n++ { // one more than there are, for a ROLLBACK after a failure
			for name, f := range map[string]once.Func{"commits": r.effect("e", "value"), "fails": fails} {
				t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
					t.Parallel()
					hung := holed(t, r, n, func(o *once.Once) {
						ctx, cancel := context.WithTimeout(t.Context(), within)
						defer cancel()
						began := time.Now()
						_, err := o.Do(ctx, once.Request{Key: t.Name()}, f)
						took := time.Since(began).Round(10 * time.Millisecond)
						if took > within+spare {
							t.Errorf("took %s, want at most %s: %v", took, within+spare, err)
						}
						t.Logf("took %s: %v", took, err)
					})
					t.Logf("nothing was answered from %s on", hung)
				})
			}
		}
	})
}

// countOps is how many operations a Do takes.
func countOps(t *testing.T, r *rig) int {
	t.Helper()
	db, _, log := r.faulty(t)
	db.SetMaxIdleConns(-1)
	o := r.open(t, db, eager())
	log.Reset()
	do(t, o, once.Request{Key: "counted"}, r.effect("counted", "value"))
	return len(log.Ops())
}

// holed calls f with a Once whose network swallows everything from the n-th operation on, and
// returns that operation's kind.
func holed(t *testing.T, r *rig, n int, f func(o *once.Once)) (hung string) {
	t.Helper()
	h, source := (&testdb.Env{Kind: r.Kind, Source: r.Source}).Holed(t)
	faults := &faultdb.Switch{}
	db, err := faultdb.Open(r.Driver, source, faults)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxIdleConns(-1) // so that each begins with a connection
	o := r.open(t, db, eager())
	var mu sync.Mutex // a transaction is rolled back beside the call
	hung = "nothing"
	faults.Set(faultdb.Func(func(op faultdb.Op) faultdb.Fault {
		mu.Lock()
		defer mu.Unlock()
		if n--; n == 0 {
			hung = op.Kind.String()
			h.Vanish()
		}
		return faultdb.None
	}))
	f(o)
	faults.Set(nil)
	mu.Lock()
	defer mu.Unlock()
	return hung
}
