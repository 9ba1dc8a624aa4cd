package election_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// record is what candidates at one election have done, with one clock for all.
type record struct {
	t     *testing.T
	drain time.Duration

	mu     sync.Mutex
	last   lease.Token
	terms  int
	leads  map[int]*running // by candidate
	causes map[string]int
}

// running is a lead that has not returned.
type running struct {
	ctx  context.Context
	lock *rowlock.Lock
	told time.Time // when ctx ended
}

// begin notes that a candidate leads. None other may lead then, nor drain.
func (r *record) begin(candidate int, ctx context.Context, lock *rowlock.Lock) *running {
	r.mu.Lock()
	defer r.mu.Unlock()
	term := lock.Token()
	if r.leads[candidate] != nil {
		r.t.Errorf("candidate %d leads beside itself", candidate)
	}
	for other, l := range r.leads {
		if l.ctx.Err() == nil {
			r.t.Errorf("term %d of candidate %d begins while %d leads", term, candidate, other)
		} else if l.drains() && time.Since(l.told) < r.drain {
			r.t.Errorf("term %d of candidate %d begins while %d drains", term, candidate, other)
		}
	}
	if term <= r.last {
		r.t.Errorf("term %d follows term %d", term, r.last)
	}
	l := &running{ctx: ctx, lock: lock}
	r.last, r.leads[candidate] = term, l
	r.terms++
	context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		l.told = time.Now()
		r.causes[context.Cause(ctx).Error()]++
	})
	return l
}

// drains reports whether a lead was ended in good order, and its lease kept for it. A database that
// cannot be reached for so long keeps none: the lead has been told to end, and cannot be told more.
func (l *running) drains() bool {
	cause := context.Cause(l.ctx)
	ordered := errors.Is(cause, context.Canceled) || errors.Is(cause, election.ErrPreferred)
	return ordered && !errors.Is(context.Cause(l.lock.Context()), rowlock.ErrLost)
}

func (r *record) end(candidate int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.leads, candidate)
}

// flaky is a store of which a call fails now and then, for a while.
func flaky(s *memstore.Store, random *rand.Rand) *clienttest.Script {
	var mu sync.Mutex
	var until time.Time
	fails := func() error {
		mu.Lock()
		defer mu.Unlock()
		if time.Now().Before(until) {
			return clienttest.ErrDown
		}
		if random.IntN(300) == 0 {
			until = time.Now().Add(time.Duration(random.IntN(60)) * time.Second)
		}
		return nil
	}
	f := &clienttest.Script{Store: s}
	f.OnAcquire = func(ctx context.Context, r []lease.AcquireRequest) ([]lease.Acquired, error) {
		if err := fails(); err != nil {
			return nil, err
		}
		return s.Acquire(ctx, r)
	}
	f.OnRenew = func(ctx context.Context, r []lease.RenewRequest) ([]lease.Renewed, error) {
		if err := fails(); err != nil {
			return nil, err
		}
		return s.Renew(ctx, r)
	}
	f.OnInspect = func(ctx context.Context, q lease.Filter) ([]lease.Record, error) {
		if err := fails(); err != nil {
			return nil, err
		}
		return s.Inspect(ctx, q)
	}
	return f
}

// Candidates come and go for an hour, with databases that fail, preferences, and leads that return
// soon, late or with an error. No two lead at once, none leads while another drains, and terms
// grow.
func TestRandomHistoriesInVirtualTime(t *testing.T) {
	causes, terms, seeds := map[string]int{}, 0, race.Few(3, 8)
	// By chance three seeds have no loss in one of a hundred runs: then others have.
	for seed := uint64(0); seed < uint64(seeds) || lacks(causes) != "" && seed < 24; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const drain = 5 * time.Second
				r := &record{t: t, drain: drain, leads: make(map[int]*running), causes: causes}
				s := memstore.New()
				var all sync.WaitGroup
				end, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				for i := range 4 {
					random := rand.New(rand.NewPCG(seed, uint64(i)))
					cfg := &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}, Fair: seed%2 == 0}
					c := clienttest.Client(t, flaky(s, rand.New(rand.NewPCG(seed, uint64(i+10)))), cfg)
					opts := []election.Option{election.Drain(drain), election.OnError(func(error) {})}
					if seed%3 == 0 {
						opts = append(opts, election.Prefer(i == 0))
					}
					all.Go(func() {
						for end.Err() == nil {
							r.stand(end, c, i, random, opts)
						}
					})
				}
				all.Wait()
				terms += r.terms
			})
		})
	}
	t.Log(terms, "terms", causes)
	// Of some 25 of a seed: how many it has depends on the order of goroutines too.
	if terms < 12*seeds {
		t.Errorf("%d terms show nothing", terms)
	}
	if want := lacks(causes); want != "" {
		t.Errorf("no lead ended with %q", want)
	}
}

// lacks is a cause that no lead has ended with, or "".
func lacks(causes map[string]int) string {
	for _, want := range []string{
		"context canceled", rowlock.ErrLost.Error(), rowlock.ErrUnlocked.Error(),
		election.ErrPreferred.Error(),
	} {
		if causes[want] == 0 {
			return want
		}
	}
	return ""
}

// stand is a candidate that is asked to end after a while.
func (r *record) stand(
	end context.Context, c *rowlock.Client, i int, random *rand.Rand, opts []election.Option,
) {
	part := func(n int) time.Duration { return time.Duration(random.IntN(n)) * time.Second }
	ctx, stop := context.WithCancel(end)
	defer time.AfterFunc(part(1200), stop).Stop()
	defer stop()
	_ = election.Run(ctx, c, "boss", func(ctx context.Context, l *rowlock.Lock) error {
		r.begin(i, ctx, l)
		defer r.end(i)
		select {
		case <-ctx.Done():
			time.Sleep(part(8)) // ends what is under way
			return ctx.Err()
		case <-time.After(part(600)):
			return []error{nil, errOwn}[random.IntN(2)]
		}
	}, opts...)
	select {
	case <-time.After(part(60)):
	case <-end.Done():
	}
}
