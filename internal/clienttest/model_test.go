package clienttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// truth is what a schedule knows of itself: who held which key with which token, and who waited for
// which keys, each from when to when. A zero end is the future.
type truth struct {
	mu    sync.Mutex
	holds []*term
	waits []*term
}

type term struct {
	task       int
	keys       []string
	token      lease.Token // of a hold
	from, to   time.Time
	standstill *bool // of its process: it can neither renew nor be heard of
}

func (tr *truth) begin(list *[]*term, x *term) *term {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	x.from = time.Now()
	*list = append(*list, x)
	return x
}

func (tr *truth) end(x *term) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if x.to.IsZero() {
		x.to = time.Now()
	}
}

// expire ends the hold of a key, wherever it is.
func (tr *truth) expire(key string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, h := range tr.holds {
		if h.to.IsZero() && h.keys[0] == key {
			h.to = time.Now()
		}
	}
}

func (x *term) during(from time.Time) bool { return x.to.IsZero() || !x.to.Before(from) }

// existed returns why a reported cycle cannot have existed at any moment of the last while, or "".
func (tr *truth) existed(victim *term, d *rowlock.DeadlockError, while time.Duration) string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	from, waiter := time.Now().Add(-while), victim
	for i, l := range d.Cycle {
		if !slices.Contains(waiter.keys, l.Key) || !waiter.during(from) {
			return fmt.Sprintf("wait %d: task %d did not wait for %q", i, waiter.task, l.Key)
		}
		if waiter.from.After(victim.from) {
			return fmt.Sprintf("task %d began to wait after the victim, task %d", waiter.task, victim.task)
		}
		at := slices.IndexFunc(tr.holds, func(h *term) bool {
			return h.keys[0] == l.Key && h.token == l.Token
		})
		if at < 0 || !tr.holds[at].during(from) {
			return fmt.Sprintf("wait %d: no task held %q with token %d", i, l.Key, l.Token)
		}
		next := tr.holds[at].task
		if i == len(d.Cycle)-1 {
			if next != victim.task {
				return fmt.Sprintf("the last key is held by task %d, not the victim %d", next, victim.task)
			}
			break
		}
		at = slices.IndexFunc(tr.waits, func(w *term) bool {
			return w.task == next && w.during(from) && slices.Contains(w.keys, d.Cycle[i+1].Key)
		})
		if at < 0 {
			return fmt.Sprintf("wait %d: task %d, which held %q, waited for nothing of it", i, next, l.Key)
		}
		waiter = tr.waits[at]
	}
	return ""
}

// standing returns a cycle that has stood for longer than d, or nil.
func (tr *truth) standing(d time.Duration) []int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	next := make(map[int][]int)
	for _, w := range tr.waits {
		for _, h := range tr.holds {
			old := time.Since(w.from) > d && !*w.standstill && !*h.standstill
			if old && w.to.IsZero() && h.to.IsZero() && slices.Contains(w.keys, h.keys[0]) {
				next[w.task] = append(next[w.task], h.task)
			}
		}
	}
	for task := range next {
		if path := loop(next, task, task, nil); path != nil {
			return path
		}
	}
	return nil
}

func loop(next map[int][]int, at, to int, path []int) []int {
	for _, n := range next[at] {
		if n == to {
			return append(path, at)
		}
		if !slices.Contains(path, n) {
			if p := loop(next, n, to, append(path, at)); p != nil {
				return p
			}
		}
	}
	return nil
}

// frail is one process's way to the store. It can be cut; and some records are carried out long
// after their call was told that the outcome is unknown.
type frail struct {
	*memstore.Store
	rng *rand.Rand
	mu  sync.Mutex
	cut bool
	lag time.Duration // of every record
	job *sync.WaitGroup
}

func (f *frail) fails() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut {
		return fmt.Errorf("%w: cut", lease.ErrUnknown)
	}
	return nil
}

func (f *frail) set(cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = cut
}

func (f *frail) late() (d time.Duration, is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lag > 0 {
		return f.lag, true
	}
	return time.Duration(f.rng.Int64N(int64(2 * time.Second))), f.rng.IntN(10) == 0
}

func (f *frail) Record(
	ctx context.Context, by lease.Party, chains []lease.Caller, life time.Duration,
) error {
	if err := f.fails(); err != nil {
		return err
	}
	if d, late := f.late(); late {
		f.job.Go(func() {
			time.Sleep(d)
			_ = f.Store.Record(context.Background(), by, chains, life)
		})
		return fmt.Errorf("%w: late", lease.ErrUnknown)
	}
	return f.Store.Record(ctx, by, chains, life)
}

func (f *frail) Erase(ctx context.Context, chains []lease.Caller) error {
	if err := f.fails(); err != nil {
		return err
	}
	return f.Store.Erase(ctx, chains)
}

func (f *frail) Edges(
	ctx context.Context, by lease.Party, from []lease.Owner, limit int,
) ([]lease.Edge, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Store.Edges(ctx, by, from, limit)
}

func (f *frail) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Store.Renew(ctx, reqs)
}

var _ interface {
	lease.Graph
	lease.Store
} = (*frail)(nil)

// Random chains of locks wait for each other, give up, are cut off, killed and expired. A call is
// ended only for a cycle that was there, and only if it began last; and no cycle stays.
func TestWaitsThatAreInNoCycleGoOn(t *testing.T) {
	var found atomic.Int64
	seeds := int64(race.Few(1, 10))
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { schedule(t, seed, &found) })
	}
	if found.Load() < seeds {
		t.Errorf("%d cycles in %d schedules: they prove little", found.Load(), seeds)
	}
	t.Logf("%d cycles in %d schedules", found.Load(), seeds)
}
