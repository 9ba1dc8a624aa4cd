package clienttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// tracing is a store whose trace can fail.
type tracing struct {
	*memstore.Store
	writes atomic.Int64
	hook   atomic.Pointer[writing]
}

// writing takes the place of WriteTrace; nil does not.
type writing func(ctx context.Context, events []lease.TraceEvent) error

func newTracing() *tracing {
	s := &tracing{Store: memstore.New()}
	s.writeBy(nil)
	return s
}

// hang is a database that does not answer.
func hang(ctx context.Context, _ []lease.TraceEvent) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s *tracing) writeBy(write writing) { s.hook.Store(&write) }

func (s *tracing) WriteTrace(ctx context.Context, events []lease.TraceEvent) error {
	if len(events) == 0 {
		return s.Store.WriteTrace(ctx, events) // New asks whether there is a trace
	}
	s.writes.Add(1)
	if write := *s.hook.Load(); write != nil {
		return write(ctx, events)
	}
	return s.Store.WriteTrace(ctx, events)
}

// everything is all that a client can trace.
var everything = []rowlock.EventKind{
	rowlock.EventGranted, rowlock.EventHandedOver, rowlock.EventReleased, rowlock.EventExpired,
	rowlock.EventLost, rowlock.EventMoved, rowlock.EventRenewedLate, rowlock.EventWaitedLong,
}

func traced() *rowlock.Config {
	cfg := &rowlock.Config{Identity: "web-1", Trace: rowlock.TraceConfig{On: true, Events: everything}}
	cfg.Reaper.Off = true
	return cfg
}

// written waits until the clients have written what they have.
func written() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

// timeline lists the trace, oldest first.
func timeline(t *testing.T, c *rowlock.Client, f rowlock.TraceFilter) []rowlock.TraceEvent {
	t.Helper()
	all, err := c.Trace(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	return all
}

// wantTimeline checks kinds, keys and tokens.
func wantTimeline(t *testing.T, c *rowlock.Client, f rowlock.TraceFilter, want ...string) []rowlock.TraceEvent {
	t.Helper()
	var got []string
	all := timeline(t, c, f)
	for _, e := range all {
		got = append(got, fmt.Sprintf("%s %s %d", e.Kind, e.Key, e.Token))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the trace of %+v is %q, want %q", f, got, want)
	}
	return all
}

func TestATraceTellsWhatBecomesOfALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Client(t, memstore.New(), traced())
		began := time.Now()
		l := Take(t, c, "k", rowlock.Note("by night"))
		next := Wait(t, c, "k")
		time.Sleep(7 * time.Second)
		Unlock(t, l)
		got := <-next
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		time.Sleep(time.Second)
		Unlock(t, got.Lock)
		written()
		all := make(map[string]rowlock.TraceEvent) // some are of the same moment
		for _, e := range timeline(t, c, rowlock.TraceFilter{Key: "k"}) {
			all[fmt.Sprintf("%s%d", e.Kind, e.Token)] = e
		}
		if e := all["granted1"]; e.Identity != "web-1" || e.Note != "by night" || e.Owner.IsZero() || e.Took != 0 ||
			e.At.Sub(began).Abs() > time.Millisecond {
			t.Errorf("the grant is traced as %+v", e)
		}
		if e := all["handed over2"]; e.Took != 7*time.Second || e.Note != "" || e.Owner == all["granted1"].Owner {
			t.Errorf("the hand-over is traced as %+v", e)
		}
		if e := all["released1"]; e.Took != 7*time.Second || e.Owner != all["granted1"].Owner || e.Note != "by night" {
			t.Errorf("the release is traced as %+v", e)
		}
		if e := all["waited long0"]; e.Took != 7*time.Second || e.Detail != "until it was granted" {
			t.Errorf("the wait is traced as %+v", e)
		}
		if len(all) != 5 {
			t.Errorf("the trace is %+v", all)
		}
	})
}

func TestATraceTellsOfATurnInOrderAsAHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := memstore.New(), traced()
		cfg.Fair, cfg.Trace.Events = true, nil
		here, there := Client(t, s, cfg), Client(t, s, cfg)
		l := Take(t, here, "k")
		next := Wait(t, there, "k")
		time.Sleep(time.Second)
		Unlock(t, l)
		got := <-next
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		defer Unlock(t, got.Lock)
		written()
		wantTimeline(t, here, rowlock.TraceFilter{Key: "k"}, "granted k 1", "handed over k 2")
	})
}

func TestATraceTellsOfALockThatWasLostAndOneThatExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		cfg := traced()
		cfg.TTL = 3 * time.Second
		holder, other := Client(t, s, cfg), Client(t, s, traced())
		l := Take(t, holder, "k")
		Another(t, s, "dead", 3*time.Second)
		waiting := Wait(t, other, "dead")
		s.Expire("k")
		<-l.Context().Done()
		got := <-waiting
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		defer Unlock(t, got.Lock)
		written()
		all := wantTimeline(t, other, rowlock.TraceFilter{Key: "k"}, "granted k 1", "lost k 1")
		if e := all[1]; e.Detail != rowlock.ErrLost.Error() || e.Took <= 0 || e.Identity != "web-1" {
			t.Errorf("the loss is traced as %+v", e)
		}
		all = wantTimeline(t, other, rowlock.TraceFilter{Prefix: "d"}, "expired dead 1", "granted dead 2")
		if e := all[0]; e.Note != "another" || e.Took < 0 || e.Took > time.Second {
			t.Errorf("the expiry is traced as %+v", e)
		}
	})
}

func TestATraceTellsOfLateRenewalsAndOfLongWaitsInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		cfg := traced()
		cfg.Trace.LongWait = 2 * time.Second
		c := Client(t, s, cfg)
		Take(t, c, "k", rowlock.Note("slow"))
		var up atomic.Bool // after 14 s
		s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			if !up.Load() {
				return nil, ErrDown
			}
			return s.Store.Renew(ctx, reqs)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 14*time.Second)
		defer cancel()
		if _, err := c.Lock(ctx, "k"); err == nil {
			t.Fatal("a held key is granted")
		}
		up.Store(true)
		time.Sleep(5 * time.Second)
		written()
		all := wantTimeline(t, c, rowlock.TraceFilter{Key: "k"},
			"granted k 1", "waited long k 0", "renewed late k 1")
		if e := all[1]; e.Took != 14*time.Second || !strings.Contains(e.Detail, `in vain: rowlock: "k" is held by web-1 (slow)`) {
			t.Errorf("the wait is traced as %+v", e)
		}
		if e := all[2]; e.Took < 4*time.Second || e.Took > 8*time.Second {
			t.Errorf("the renewal is traced as %+v", e)
		}
		time.Sleep(time.Minute)
		written()
		wantTimeline(t, c, rowlock.TraceFilter{Key: "k"},
			"granted k 1", "waited long k 0", "renewed late k 1") // those in time are not told
	})
}

// A page has what is missing too, whatever key it is of.
func TestATimelineHasForcedReleasesAndComesInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c := Client(t, s, traced())
		ns, err := c.Namespace("billing", rowlock.Quota{})
		if err != nil {
			t.Fatal(err)
		}
		odd := "k\x00\xff"
		Take(t, ns, odd, rowlock.Note("stuck"))
		time.Sleep(time.Second)
		take(t, ns, odd, byHand)
		time.Sleep(TTL)
		Unlock(t, Take(t, ns, odd))
		Unlock(t, Take(t, c, "other"))
		if err := s.WriteTrace(t.Context(), []lease.TraceEvent{
			{Kind: lease.EventDropped, At: time.Now(), ID: 1, Dropped: 3},
		}); err != nil {
			t.Fatal(err)
		}
		written()
		want := []string{
			"granted " + odd + " 1", "forced " + odd + " 1", "lost " + odd + " 1", "granted " + odd + " 3",
			"released " + odd + " 3",
		}
		f := rowlock.TraceFilter{Key: odd, Limit: 2}
		var got []string
		for page := timeline(t, ns, f); len(page) > 0 && len(got) < 9; page = timeline(t, ns, f) {
			for _, e := range slices.Backward(page) {
				if e.Kind == lease.EventForced && (e.Detail != byHand.By+": "+byHand.Reason || e.Note != "stuck") {
					t.Errorf("a forced release is traced as %+v", e)
				}
				if e.Kind != lease.EventDropped {
					got = slices.Insert(got, 0, fmt.Sprintf("%s %s %d", e.Kind, e.Key, e.Token))
				} else if e.Dropped != 3 {
					t.Errorf("dropped events are traced as %+v", e)
				}
			}
			f.Before = page[0]
		}
		if !slices.Equal(got, want) {
			t.Errorf("the pages have %q, want %q", got, want)
		}
		if all := timeline(t, c, rowlock.TraceFilter{Key: "billing/" + odd}); len(all) != 6 {
			t.Errorf("the whole client lists %+v", all)
		}
	})
}

func TestWithoutTraceNothingIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTracing()
		c := Client(t, s, &rowlock.Config{})
		Unlock(t, Take(t, c, "k"))
		time.Sleep(time.Hour)
		if n := s.writes.Load(); n != 0 {
			t.Errorf("the trace was written %d times", n)
		}
		wantTimeline(t, c, rowlock.TraceFilter{})
		all, err := s.Inspect(t.Context(), lease.Filter{})
		for _, r := range all {
			if strings.HasSuffix(r.Key, "trace") {
				t.Errorf("a lock for the trace: %+v", r)
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
}

func TestATraceThatHangsHoldsUpNoLockAndDropsWithACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := newTracing(), traced()
		cfg.Trace.Buffer = 100
		s.writeBy(hang)
		c := Client(t, s, cfg)
		began := time.Now()
		for range 200 {
			Unlock(t, Take(t, c, "k"))
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("locks took %s longer", took)
		}
		written()
		Unlock(t, Take(t, c, "k")) // while it hangs
		if n := c.Stats(); n.TraceDropped != 302 || n.Traced != 0 {
			t.Errorf("%d events dropped and %d written of 402, want those beyond the buffer", n.TraceDropped, n.Traced)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		s.writeBy(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		Unlock(t, Take(t, c, "k"))
		written()
		n, missing := c.Stats(), int64(0)
		all := timeline(t, c, rowlock.TraceFilter{})
		for _, e := range all {
			missing += e.Dropped
		}
		if n.TraceDropped != 302 || missing != 302 || n.Traced != 102 || len(all) != 103 {
			t.Errorf("%d events dropped, %d of them told, %d written, %d listed", n.TraceDropped, missing, n.Traced, len(all))
		}
	})
}

func TestATraceThatIsRefusedIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log Journal
		s, cfg := newTracing(), traced()
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		s.writeBy(func(context.Context, []lease.TraceEvent) error {
			return fmt.Errorf("%w: write the trace: GRANT it", lease.ErrPrivilege)
		})
		c := Client(t, s, cfg)
		for range 30 {
			Unlock(t, Take(t, c, "k"))
			time.Sleep(20 * time.Second)
		}
		if n := strings.Count(log.String(), "GRANT it"); n != 1 {
			t.Errorf("it was logged %d times:\n%s", n, log.String())
		}
		if n := s.writes.Load(); n > 20 {
			t.Errorf("a refused user was tried %d times in 10 minutes, want one a minute", n)
		}
		s.writeBy(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := c.Stats(); n.Traced != 60 || n.TraceDropped != 0 {
			t.Errorf("after a grant %d events are written and %d dropped", n.Traced, n.TraceDropped)
		}
	})
}

func TestABatchWithAnUnknownOutcomeIsNotWrittenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTracing()
		var failed atomic.Bool
		s.writeBy(func(ctx context.Context, events []lease.TraceEvent) error {
			err := s.Store.WriteTrace(ctx, events)
			if !failed.Swap(true) {
				err = errors.Join(lease.ErrUnknown, err)
			}
			return err
		})
		c := Client(t, s, traced())
		Unlock(t, Take(t, c, "k"))
		written()
		Unlock(t, Take(t, c, "k"))
		written()
		all := wantTimeline(t, c, rowlock.TraceFilter{}, "granted k 1", "released k 1", "dropped  0",
			"granted k 2", "released k 2")
		if n := c.Stats(); n.TraceDropped != 2 || n.Traced != 2 || all[2].Dropped != 2 {
			t.Errorf("%d events are written and %d dropped, of which %d are told", n.Traced, n.TraceDropped, all[2].Dropped)
		}
	})
}

func TestCloseWritesWhatTheTraceHasInBoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := newTracing(), traced()
		c, err := rowlock.New(s, cfg)
		if err != nil {
			t.Fatal(err)
		}
		Take(t, c, "k")
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		wantTimeline(t, Client(t, s, nil), rowlock.TraceFilter{}, "granted k 1", "released k 1")

		var log Journal
		s.writeBy(hang)
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		if c, err = rowlock.New(s, cfg); err != nil {
			t.Fatal(err)
		}
		Take(t, c, "k")
		began := time.Now()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Close took %s", took)
		}
		if n := c.Stats(); n.TraceDropped != 2 || !strings.Contains(log.String(), "events=2") {
			t.Errorf("%d events dropped, and the log says:\n%s", n.TraceDropped, log.String())
		}
	})
}

func TestOneClientRemovesOldEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := memstore.New(), traced()
		cfg.Reaper.Off, cfg.Trace.Retention = false, 2*time.Hour
		a, b := Client(t, s, cfg), Client(t, s, cfg)
		plain := Client(t, s, &rowlock.Config{}) // it may be elected as the reaper, and not for the trace
		Unlock(t, Take(t, a, "old"))
		time.Sleep(time.Hour)
		Unlock(t, Take(t, b, "young"))
		time.Sleep(time.Hour + 2*time.Minute)
		synctest.Wait()
		wantTimeline(t, plain, rowlock.TraceFilter{}, "granted young 1", "released young 1")
		if r := Record(t, s, lease.Reserved+"trace"); !r.Held {
			t.Error("no client is elected")
		}
	})
}

func TestATraceThatMakesNoSenseIsRefused(t *testing.T) {
	for want, cfg := range map[string]rowlock.TraceConfig{
		"Trace.Retention (30s) must be at least 1m": {Retention: 30 * time.Second},
		"Trace.LongWait (-1s) is negative":          {LongWait: -time.Second},
		"Trace.Buffer (-1) must be at least 100":    {Buffer: -1},
		`Trace.Events has "forced"`:                 {Events: []rowlock.EventKind{rowlock.EventForced}},
		`Trace.Events has "unknown"`:                {Events: []rowlock.EventKind{99}},
	} {
		_, err := rowlock.New(memstore.New(), &rowlock.Config{Trace: cfg})
		if !errors.Is(err, rowlock.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", cfg, err, want)
		}
	}
	bare := struct{ lease.Store }{memstore.New()}
	_, err := rowlock.New(bare, &rowlock.Config{Trace: rowlock.TraceConfig{On: true}})
	WantIs(t, "a store without a trace", err, rowlock.ErrUnsupported)
	c := Client(t, bare, nil)
	_, err = c.Trace(t.Context(), rowlock.TraceFilter{})
	WantIs(t, "a store without a trace", err, rowlock.ErrUnsupported)
	c = Client(t, memstore.New(), nil)
	_, err = c.Trace(noContext, rowlock.TraceFilter{})
	WantIs(t, "a nil ctx", err, rowlock.ErrConfig)
	_, err = c.Trace(t.Context(), rowlock.TraceFilter{Prefix: strings.Repeat("x", 256)})
	WantIs(t, "a long prefix", err, rowlock.ErrConfig)
	_, err = c.Trace(t.Context(), rowlock.TraceFilter{Key: strings.Repeat("x", 256)})
	WantIs(t, "a long key", err, rowlock.ErrInvalidKey)
}
