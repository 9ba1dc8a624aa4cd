package locktest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/rowlockdb/rowlock/lease"
)

// rounds keeps the keys of one sequence apart from those of all others of the process.
var rounds atomic.Int64

// RunRandom runs random sequences of calls, by three owners on three keys of one store, and
// compares every answer with a model of the lock. A sequence that fails is cut down to the calls
// that matter.
//
// There are 100 sequences (-rapid.checks) of 30 calls on average (-rapid.steps), fewer with -short,
// and none has more than steps calls; 0 means no bound. A failure prints what to give to
// -rapid.seed or -rapid.failfile to see it again.
func RunRandom(t *testing.T, h Harness, steps int) {
	t.Helper()
	requireHooks(t, h)
	random(newRig(t, h), steps)
}

func random(r *rig, steps int) {
	r.Helper()
	if steps <= 0 {
		steps = math.MaxInt
	}
	rapid.Check(r.TB, func(t *rapid.T) {
		// A limit for all sequences together would end one that works, on a slow machine.
		ctx, cancel := context.WithTimeout(r.Context(), r.h.limit())
		defer cancel()
		one := *r
		one.ctx = ctx
		m := newMachine(t, &one)
		actions := m.actions()
		left := steps
		for name, act := range actions {
			actions[name] = func(t *rapid.T) {
				if left--; left >= 0 {
					act(t)
				}
			}
		}
		actions[""] = m.inspect
		t.Repeat(actions)
		m.tidy()
	})
}

// machine is a store and what it should contain.
type machine struct {
	*rapid.T
	r      *rig
	keys   []string
	owners []lease.Owner
	rows   map[string]*modelRow
}

// modelRow is the model of one key.
type modelRow struct {
	lease.Lease // of the last grant; no owner once released
	live        bool
	swept       bool          // the row may be gone
	terms       []lease.Lease // every term granted, the latest first
}

func newMachine(t *rapid.T, r *rig) *machine {
	m := &machine{T: t, r: r, rows: make(map[string]*modelRow)}
	round := rounds.Add(1)
	for i := range 3 {
		key := fmt.Sprintf("random %d/%d", round, i)
		m.keys, m.owners = append(m.keys, key), append(m.owners, lease.NewOwner())
		m.rows[key] = &modelRow{}
	}
	return m
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"acquire":          func(t *rapid.T) { m.acquire(m.anyKey(t), m.anyOwner(t)) },
		"acquire again":    func(t *rapid.T) { l := m.anyTerm(t); m.acquire(l.Key, l.Owner) },
		"renew":            func(t *rapid.T) { m.renew(m.anyTerm(t)) },
		"release":          func(t *rapid.T) { m.release(m.anyTerm(t)) },
		"release by owner": func(t *rapid.T) { l := m.anyTerm(t); l.Token = 0; m.release(l) },
		"expire":           func(t *rapid.T) { m.expire(m.anyKey(t)) },
		"sweep":            func(*rapid.T) { m.sweep() },
	}
}

func (m *machine) anyKey(t *rapid.T) string { return rapid.SampledFrom(m.keys).Draw(t, "key") }

func (m *machine) anyOwner(t *rapid.T) lease.Owner {
	return rapid.SampledFrom(m.owners).Draw(t, "owner")
}

// anyTerm is one of those granted so far, the latest more often than others, or one that was never
// granted.
func (m *machine) anyTerm(t *rapid.T) lease.Lease {
	key := m.anyKey(t)
	terms := m.rows[key].terms
	if i := rapid.IntRange(0, 4).Draw(t, "term"); i < len(terms) {
		return terms[i]
	}
	return lease.Lease{Key: key, Owner: m.anyOwner(t), Token: lease.Token(rapid.Int64Range(1, 4).Draw(t, "token"))}
}

func (m *machine) expire(key string) {
	m.r.expire(key)
	m.rows[key].live = false
}

func (m *machine) acquire(key string, owner lease.Owner) {
	row := m.rows[key]
	q := request(key, owner)
	q.Note = owner.String()
	a, err := acquireOne(m.r.ctx, m.r.here, q)
	switch {
	case err != nil:
		m.Fatalf("acquire: %v", err)
	case row.live && row.Owner == owner:
		if !a.Granted || a.Token != row.Token {
			m.Fatalf("the owner asks again: %+v, want token %d", a, row.Token)
		}
	case row.live:
		if rest := a.Holder.Remaining; a.Granted || a.Holder.Note != row.Owner.String() || rest <= 0 || rest > ttl+tolerance {
			m.Fatalf("a loser: %+v, holder %v", a, row.Owner)
		}
	default:
		if !a.Granted || a.Token <= row.Token {
			m.Fatalf("a free key: %+v, want a token above %d", a, row.Token)
		}
		row.Lease = lease.Lease{Key: key, Owner: owner, Token: a.Token}
		row.terms = append([]lease.Lease{row.Lease}, row.terms...)
		row.live, row.swept = true, false
	}
}

func (m *machine) renew(l lease.Lease) {
	row := m.rows[l.Key]
	want := lease.Lost
	if row.live && row.Lease == l {
		want = lease.Extended
	}
	if got := m.r.renewAll(l)[0]; got != want {
		m.Fatalf("renew %+v: %v, want %v", l, got, want)
	}
}

func (m *machine) release(l lease.Lease) {
	row := m.rows[l.Key]
	got, err := releaseOne(m.r.ctx, m.r.here, l)
	if err != nil {
		m.Fatalf("release: %v", err)
	}
	mine := row.Owner == l.Owner && (row.Token == l.Token || l.Token == 0)
	// An expired lease may count as gone or not.
	if expired := mine && !row.live; !expired && got.Gone == mine {
		m.Fatalf("release %+v: gone %t", l, got.Gone)
	}
	if mine && !got.Gone {
		row.Owner, row.live = lease.Owner{}, false
	}
}

func (m *machine) sweep() {
	if !m.r.canSweep() {
		return
	}
	m.r.sweep(lease.SweepOptions{Batch: 2})
	for _, row := range m.rows {
		row.swept = row.swept || !row.live
	}
}

// inspect compares all rows with the model.
func (m *machine) inspect(*rapid.T) {
	found := make(map[string]lease.Record)
	for _, rec := range m.r.list(lease.Filter{Keys: m.keys}) {
		found[rec.Key] = rec
	}
	for key, row := range m.rows {
		rec, ok := found[key]
		delete(found, key)
		if !ok && (row.swept || row.Token == 0) {
			continue
		}
		// A caller that lost may have got one database of several, and given it back: that database
		// then has a higher token, and no holder.
		ahead := m.r.h.Steady && !row.live && rec.Token > row.Token
		if !ok || rec.Token != row.Token && !ahead || rec.Held != row.live || row.live && rec.Lease != row.Lease {
			m.Fatalf("inspect %q: %+v (found: %t), want %+v live %t", key, rec, ok, row.Lease, row.live)
		}
	}
	if len(found) > 0 {
		m.Fatalf("inspect lists keys that were not asked for: %q", slices.Collect(maps.Keys(found)))
	}
}

// tidy leaves no held rows behind, so that the next sequence sweeps no slower than this one.
func (m *machine) tidy() {
	for _, row := range m.rows {
		if row.live {
			m.release(row.Lease)
		}
	}
	m.sweep()
}
