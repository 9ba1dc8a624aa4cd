package corrupt

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

// bound is far above what the slowest machine needs for a call that gives up by itself.
const bound = 5 * time.Minute

// typed are the errors that a row may be answered with: each says what a caller can do.
var typed = []error{
	lease.ErrCorrupt, lease.ErrMoved, lease.ErrTokenExhausted, lease.ErrBusy, lease.ErrLimit,
	lease.ErrNotHeld, lease.ErrConfig, lease.ErrUnsupported,
}

// run is one input: the store on the rows that it drew, and what was seen of them.
type run struct {
	*testing.T
	env     *testdb.Env
	store   *table.Store
	rows    rows
	shown   map[string]lease.Token // the largest token of a key that anything showed
	asked   []lease.AcquireRequest
	held    []lease.Lease
	waiters []lease.Lease
	sharing bool
}

// FuzzRows writes rows that rowlock cannot have written, and makes calls. A row is refused with an
// error that has a name, or counts as held. No call panics, hangs or grants a token that is not
// above all that its row has shown.
func FuzzRows(f *testing.F) {
	seed(f)
	e := loose(f)
	opened, err := rowlock.OpenTable(e.Pool(f), e.Dialect, servertest.Config())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = opened.Close() })
	f.Fuzz(func(t *testing.T, rows, calls []byte) {
		fresh(t, e, &draw{rows}, ofLocks)
		store := opened.(*table.Store)
		r := &run{T: t, env: e, store: store, rows: store, shown: make(map[string]lease.Token)}
		d := &draw{calls}
		for range min(len(calls), 12) {
			r.call(d, r.all())
		}
	})
}

// rows are the abilities that an optimistic store has too.
type rows interface {
	lease.Store
	lease.Passer
	lease.Graph
	lease.Sweeper
}

// FuzzOptimistic is FuzzRows for a store that changes a row only if it is as it was read.
func FuzzOptimistic(f *testing.F) {
	seed(f)
	e := loose(f)
	store, err := optimistic.New(e.Pool(f), e.Dialect)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	f.Fuzz(func(t *testing.T, rows, calls []byte) {
		fresh(t, e, &draw{rows}, ofLocks)
		r := &run{T: t, env: e, rows: store, shown: make(map[string]lease.Token)}
		d := &draw{calls}
		for range min(len(calls), 12) {
			r.call(d, []call{
				r.acquire, r.acquireOne, r.handOver, r.renew, r.release, r.inspect, r.graph, r.sweep,
			})
		}
	})
}

type call = func(context.Context, *draw) error

func (r *run) all() []call {
	return []call{
		r.acquire, r.acquireOne, r.acquireAll, r.acquireAny, r.claim, r.share, r.acquireWithin, r.limit,
		r.join, r.places, r.leave, r.pass, r.handOver, r.renew, r.downgrade, r.release, r.raise,
		r.inspect, r.force, r.forced, r.trace, r.graph, r.sweep, r.waiting, r.move,
	}
}

func (r *run) call(d *draw, all []call) {
	r.look()
	r.asked = nil
	n := d.next(len(all))
	ctx, cancel := context.WithTimeout(r.Context(), bound)
	defer cancel()
	err := all[n](ctx, d)
	// Of a request that is repeated, a part may be left.
	if !isTyped(err) && !(r.repeats() && errors.Is(err, lease.ErrUnknown)) {
		r.Errorf("call %d: %v", n, err)
	}
}

// look notes the tokens that the rows show.
func (r *run) look() {
	query := `SELECT {key}, token FROM {rowlock} WHERE token IS NOT NULL`
	if r.env.Name == "sqlite" {
		query += ` AND typeof(token) = 'integer' AND typeof(key) = 'blob'`
	}
	rows, err := r.env.DB.Query(r.env.SQL(query))
	if err != nil {
		r.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var k sql.RawBytes
		var token int64 // which may be negative here
		if err := rows.Scan(&k, &token); err != nil {
			r.Fatal(err)
		}
		r.shown[string(k)] = max(r.shown[string(k)], lease.Token(token))
	}
}

// granted checks the answers to r.asked.
func (r *run) granted(out []lease.Acquired, err error) error {
	for i, a := range out {
		if err = first(err, a.Err); a.Err != nil || !a.Granted {
			continue
		}
		q := r.asked[i]
		r.larger(q.Key, a.Token)
		r.held = append(r.held, lease.Lease{Key: q.Key, Owner: q.Owner, Token: a.Token, Shared: r.sharing})
	}
	return err
}

// larger fails unless a token is one that may be granted. A repeated request and a member that
// joins have the token of their grant.
func (r *run) larger(key string, token lease.Token) {
	again := r.sharing || r.repeats()
	if shown := r.shown[key]; token <= 0 || token >= lease.MaxToken || token < shown || token == shown && !again {
		r.Errorf("%q was granted with %d, after %d", key, token, shown)
	}
	if key != "" {
		r.shown[key] = token
	}
}

// repeats reports whether the rows may name an owner of r.asked.
func (r *run) repeats() bool {
	return slices.ContainsFunc(r.asked, func(q lease.AcquireRequest) bool { return q.Owner == lease.Owner{2} })
}

func isTyped(err error) bool {
	return err == nil || is(err, typed)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
