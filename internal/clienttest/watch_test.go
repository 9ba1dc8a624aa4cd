package clienttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// listed counts listings, and fails them if told to.
type listed struct {
	*memstore.Store
	n    atomic.Int64
	down atomic.Bool
}

func (s *listed) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	if s.n.Add(1); s.down.Load() {
		return nil, ErrDown
	}
	return s.Store.Inspect(ctx, f)
}

// seen collects what a watch yields.
type seen struct {
	mu   sync.Mutex
	all  []string
	errs int
	last rowlock.Event
}

// watching begins a watch that ends with the test.
func watching(t *testing.T, c *rowlock.Client, prefix string) *seen {
	t.Helper()
	s := &seen{}
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() {
		for e, err := range c.Watch(ctx, prefix) {
			s.add(e, err)
		}
	})
	t.Cleanup(func() {
		cancel()
		reading.Wait()
	})
	synctest.Wait()
	return s
}

func (s *seen) add(e rowlock.Event, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.errs++
		return
	}
	s.last = e
	s.all = append(s.all, fmt.Sprintf("%s %s %d", e.Key, e.Kind, e.Token))
}

// sort puts the events so far in order.
func (s *seen) sort() {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.all)
}

// want wants these events since the last call, and no others.
func (s *seen) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.all, ", "); got != strings.Join(want, ", ") {
		t.Errorf("watched %q, want %q", got, want)
	}
	s.all = nil
}

func TestAWatchTellsWhatBecomesOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		c, other := Client(t, store, nil), Client(t, store, nil)
		old := Take(t, other, "a/old")
		Take(t, other, "b/not watched")
		w := watching(t, c, "a/")
		w.want(t, "a/old granted 1")

		Unlock(t, old)
		time.Sleep(time.Second)
		w.want(t, "a/old released 1")

		dead := Another(t, store, "a/dead", 3*time.Second)
		time.Sleep(time.Second)
		w.want(t, fmt.Sprintf("a/dead granted %d", dead.Token))
		w.mu.Lock()
		if w.last.Note != "another" || w.last.Remaining <= time.Second {
			t.Errorf("it is told as %+v", w.last)
		}
		w.mu.Unlock()
		time.Sleep(3 * time.Second)
		w.want(t, fmt.Sprintf("a/dead expired %d", dead.Token))

		mine := Take(t, c, "a/mine") // sooner, because it is the watcher's own
		time.Sleep(60 * time.Millisecond)
		w.want(t, "a/mine granted 1")
		Unlock(t, mine)
		time.Sleep(60 * time.Millisecond)
		w.want(t, "a/mine released 1")
		again := Take(t, other, "a/mine")
		time.Sleep(5 * time.Second)
		w.want(t, fmt.Sprintf("a/mine granted %d", again.Token()))
		Unlock(t, again)
	})
}

// A key that changes hands between two listings is granted once, with its last token.
func TestAWatchTellsStatesAndNotSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		c, other := Client(t, store, nil), Client(t, store, nil)
		w := watching(t, c, "")
		var last *rowlock.Lock
		for i := range 5 {
			if i > 0 {
				Unlock(t, last)
			}
			last = Take(t, other, "k")
		}
		time.Sleep(time.Second)
		w.want(t, fmt.Sprintf("k granted %d", last.Token()))
		Unlock(t, last)
		last = Take(t, other, "k")
		time.Sleep(time.Second)
		w.want(t, fmt.Sprintf("k granted %d", last.Token()))
		Unlock(t, last)
	})
}

// A lock that its client has given up is told as lost at once, and not again while its row lasts.
func TestAWatchTellsOfALossOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		c := Client(t, store, nil)
		w := watching(t, c, "")
		l, err := c.Lock(t.Context(), "k", rowlock.MaxHold(10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Second)
		w.want(t, "k granted 1")
		<-l.Context().Done()
		w.want(t, "k lost 1")
		time.Sleep(time.Minute)
		w.want(t)
		WantIs(t, "unlock", l.Unlock(t.Context()), rowlock.ErrMaxHold)
		next := Take(t, c, "k")
		time.Sleep(time.Second)
		w.want(t, fmt.Sprintf("k granted %d", next.Token()))
		Unlock(t, next)
	})
}

// A reader that does not read delays no other. It gets the last event of each key, with a count of
// those that it has missed, and of the oldest keys none if there are too many.
func TestASlowReaderSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		c, other := Client(t, store, nil), Client(t, store, nil)
		quick := watching(t, c, "")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []rowlock.Event
		read, over := make(chan bool), make(chan bool)
		go func() {
			defer close(over)
			for e := range c.Watch(ctx, "") {
				got = append(got, e)
				if len(got) == 1 {
					<-read
				}
			}
		}()
		Take(t, other, "first")
		time.Sleep(time.Second)
		var last *rowlock.Lock
		for range 4 {
			last = Take(t, other, "k")
			time.Sleep(time.Second)
			Unlock(t, last)
			time.Sleep(time.Second)
		}
		for i := range 5000 {
			Another(t, store, fmt.Sprintf("many %d", i), time.Hour)
			if i%1000 == 0 { // the quick one has room for 4,096
				time.Sleep(time.Second)
			}
		}
		time.Sleep(2 * time.Second)
		quick.mu.Lock()
		if n := len(quick.all); n != 1+8+5000 {
			t.Errorf("the quick reader has %d events", n)
		}
		quick.mu.Unlock()
		close(read)
		synctest.Wait()
		cancel()
		<-over
		// The first was read, k and some of the others were dropped.
		if n := len(got); n != 1+4096 || got[1].Skipped != 8+5000-4096 {
			t.Errorf("%d events, %d skipped", n, got[1].Skipped)
		}
	})
}

func TestALaterEventOfAKeyReplacesTheEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		c, other := Client(t, store, nil), Client(t, store, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		held := Take(t, other, "first")
		var after *rowlock.Lock
		for e, err := range c.Watch(ctx, "") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Key == "first" {
				for range 3 {
					after = Take(t, other, "k")
					time.Sleep(time.Second)
					Unlock(t, after)
					time.Sleep(time.Second)
				}
				continue
			}
			if e.Kind != rowlock.EventReleased || e.Token != after.Token() || e.Skipped != 5 {
				t.Errorf("after the reader slept: %+v", e)
			}
			break
		}
		Unlock(t, held)
	})
}

// A thousand watchers cost what one does.
func TestWatchersShareAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &listed{Store: memstore.New()}
		c := Client(t, store, nil)
		for i := range 1000 {
			watching(t, c, fmt.Sprintf("tenant %d/", i))
		}
		time.Sleep(time.Minute)
		before := store.n.Load()
		time.Sleep(time.Minute)
		if n := store.n.Load() - before; n < 59 || n > 61 {
			t.Errorf("%d listings in a minute", n)
		}
	})
}

// Nothing is listed when no call watches, and a listing that fails is told and repeated.
func TestAWatchBeginsAndEndsWithItsReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &listed{Store: memstore.New()}
		c := Client(t, store, nil)
		l := Take(t, c, "k")
		time.Sleep(time.Minute)
		if n := store.n.Load(); n != 0 {
			t.Errorf("%d listings without a reader", n)
		}
		store.down.Store(true)
		for e, err := range c.Watch(t.Context(), "") {
			if store.down.Swap(false) {
				WantIs(t, "a watch of a store that is down", err, ErrDown)
				continue
			}
			if err != nil || e.Key != "k" {
				t.Errorf("after it: %+v, %v", e, err)
			}
			break
		}
		time.Sleep(time.Second)
		before := store.n.Load()
		time.Sleep(time.Minute)
		if n := store.n.Load(); n != before {
			t.Errorf("%d listings after the last reader has left", n-before)
		}
		Unlock(t, l)
	})
}

func TestAWatchThatCannotBeSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Client(t, memstore.New(), nil)
		one := func(ctx context.Context, prefix string) (err error) {
			for _, err = range c.Watch(ctx, prefix) {
				break
			}
			return err
		}
		var none context.Context
		WantIs(t, "no ctx", one(none, ""), lease.ErrConfig)
		WantIs(t, "a long prefix", one(t.Context(), strings.Repeat("k", 256)), lease.ErrConfig)
		over := make(chan error, 1)
		go func() {
			for range c.Watch(t.Context(), "") {
			}
			over <- nil
		}()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		<-over // Close ends it
		if err := one(t.Context(), ""); !errors.Is(err, rowlock.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
