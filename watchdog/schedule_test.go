package watchdog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/lossy"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/watchdog"
	"pgregory.net/rapid"
)

var fates = lossy.Fates(ttl)

// leasing is one lease of a schedule.
type leasing struct {
	wait               time.Duration // before it is asked for
	ttl, margin, every time.Duration
	granting           lossy.Fate
}

var leasings = rapid.Custom(func(t *rapid.T) leasing {
	between := func(label string, from, to time.Duration) time.Duration {
		return time.Duration(rapid.Int64Range(int64(from), int64(to)).Draw(t, label))
	}
	var l leasing
	l.wait = between("wait", 0, ttl)
	l.ttl = between("ttl", ttl/6, 2*ttl)
	l.margin = between("margin", 1, l.ttl/2)
	l.every = between("every", l.ttl/5, l.ttl-l.margin-1)
	l.granting = fates.Draw(t, "granting")
	return l
})

// With honest clocks, and whatever the network does: while a holder believes in its lease the store
// does too, so that no other owner can have the key; and a holder is never late to stop.
func TestHeldMeansUnexpired(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		leasings := rapid.SliceOfN(leasings, 1, 6).Draw(rt, "leases")
		fates := rapid.SliceOfN(fates, 1, 30).Draw(rt, "fates")
		batch := rapid.IntRange(1, 3).Draw(rt, "batch")
		parallel := rapid.IntRange(1, 3).Draw(rt, "parallel")
		var wrong []string
		synctest.Test(t, func(*testing.T) { // in which nothing may fail, or rapid could not shrink
			wrong = simulate(leasings, fates, watchdog.Config{Batch: batch, Parallel: parallel})
		})
		for _, w := range wrong {
			rt.Error(w)
		}
	})
}

// believer is a lease as its holder sees it.
type believer struct {
	watchdog.Held
	ended chan struct{}
}

func (b *believer) believes() bool {
	select {
	case <-b.ended:
		return false
	default:
		return true
	}
}

// world is one simulation: a store, a network and the holders of leases.
type world struct {
	store *memstore.Store
	dog   *watchdog.Watchdog
	kept  chan *believer

	mu    sync.Mutex
	wrong []string
}

func (w *world) report(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

func simulate(leasings []leasing, fates []lossy.Fate, config watchdog.Config) (wrong []string) {
	w := &world{store: memstore.New(), kept: make(chan *believer, len(leasings))}
	config.Skewed = func(ahead time.Duration) { w.report("suspected an honest clock of %v", ahead) }
	w.dog = watchdog.New(lossy.New(w.store, 0, fates), config)
	for i, l := range leasings {
		go w.grant(fmt.Sprint(i), l)
	}
	var believers []*believer
	for range 300 {
		time.Sleep(ttl / 59)
		synctest.Wait()
		for len(w.kept) > 0 {
			believers = append(believers, <-w.kept)
		}
		for _, b := range believers {
			if b.believes() {
				w.judge(b)
			}
		}
	}
	w.dog.Stop()
	time.Sleep(10 * ttl) // for what is still on its way
	return w.wrong
}

// grant asks the store for a lease and has it kept.
func (w *world) grant(key string, l leasing) {
	time.Sleep(l.wait)
	ctx, cancel := context.WithTimeout(context.Background(), 2*ttl)
	defer cancel()
	req := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: l.ttl}
	sent := time.Now()
	answers, err := lossy.Carry(ctx, l.granting, func(ctx context.Context) ([]lease.Acquired, error) {
		return w.store.Acquire(ctx, []lease.AcquireRequest{req})
	})
	if err != nil {
		return
	}
	b := &believer{ended: make(chan struct{})}
	b.Held = watchdog.Held{
		Lease: lease.Lease{Key: key, Owner: req.Owner, Token: answers[0].Token},
		TTL:   l.ttl, Margin: l.margin, Every: l.every,
		Holder: holder{end: func(error) {
			w.judge(b) // up to this very instant it believed
			close(b.ended)
		}},
	}
	if w.dog.Keep(&b.Held, sent) == nil {
		w.kept <- b
	}
}

// judge compares what a holder believes with what the store knows.
func (w *world) judge(b *believer) {
	records, err := w.store.Inspect(context.Background(), lease.Filter{Keys: []string{b.Key}})
	switch {
	case err != nil || len(records) != 1:
		w.report("inspect %q: %v, %v", b.Key, records, err)
	case !records[0].Held || records[0].Lease != b.Lease:
		w.report("%q: its holder believes in %v, the store has %+v", b.Key, b.Lease, records[0])
	}
	if late := time.Since(w.dog.Deadline(&b.Held)); late > 0 {
		w.report("%q: its holder is told %v after the deadline", b.Key, late)
	}
}
