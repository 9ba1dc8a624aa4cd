package table

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// A driver panics in the call of one reader, whose program recovers: the others are not kept
// waiting for its answer.
func TestAPanicEndsAGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, began := make(chan struct{}), make(chan struct{})
		g := &gather{verb: "share"}
		g.run = func(_ context.Context, note string, reqs []lease.RenewRequest, _ wanted) []member {
			if note == "panics" {
				close(began)
				<-first
				panic("a driver's")
			}
			return make([]member, len(reqs))
		}
		reqs := []lease.RenewRequest{{Lease: lease.Lease{Key: "k", Owner: lease.NewOwner()}}}
		ask := func(note string) {
			defer func() { _ = recover() }()
			g.do(t.Context(), note, reqs)
		}
		go ask("panics")
		<-began
		var answered atomic.Int32
		go func() { ask("beside"); answered.Add(1) }()
		synctest.Wait()
		close(first)
		synctest.Wait()
		go func() { ask("after"); answered.Add(1) }()
		synctest.Wait()
		if n := answered.Load(); n != 2 || g.asks("k") {
			t.Errorf("%d of two requests are answered; under way: %t", n, g.asks("k"))
		}
	})
}

// A reader's caller has left: no later statement lets the reader in. Nothing would remove it, for
// the client looks for what a call has left for a few seconds after the call.
func TestAReaderWhoseCallerHasLeftIsLetInByNoLaterTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		try := make(chan struct{})
		var asked []string
		g := &gather{verb: "share"}
		g.run = func(_ context.Context, _ string, reqs []lease.RenewRequest, wanted wanted) []member {
			for range 2 { // the first try has no answer
				<-try
				for _, r := range wanted() {
					asked = append(asked, r.Key)
				}
			}
			return make([]member, len(reqs))
		}
		errs := make(map[string]error)
		ask := func(ctx context.Context, key string) {
			errs[key] = g.do(ctx, "", []lease.RenewRequest{{Lease: lease.Lease{Key: key}}})[0].err
		}
		ctx, leave := context.WithCancel(t.Context())
		next := func(f func()) { f(); synctest.Wait() }
		next(func() { go ask(t.Context(), "a") })
		next(func() { go ask(ctx, "unsent") })
		next(leave)
		ctx, leave = context.WithCancel(t.Context())
		next(func() { go ask(t.Context(), "stays") })
		next(func() { go ask(ctx, "leaves") })
		for range 3 {
			next(func() { try <- struct{}{} })
		}
		next(leave)
		next(func() { try <- struct{}{} })
		if got, want := strings.Join(asked, " "), "a a stays leaves stays"; got != want {
			t.Errorf("asked for %q, want %q", got, want)
		}
		if err := errs["unsent"]; !errors.Is(err, context.Canceled) || errors.Is(err, lease.ErrUnknown) {
			t.Errorf("left before its statement: %v", err)
		}
		if err := errs["leaves"]; !errors.Is(err, lease.ErrUnknown) {
			t.Errorf("left beside its statement: %v", err)
		}
		if errs["stays"] != nil || g.asks("unsent") || g.asks("leaves") {
			t.Errorf("who stays: %v; under way: %v", errs["stays"], g.asked)
		}
	})
}

// The database does not answer. A request that waits for an earlier statement ends in the time that
// it has itself, and not in that of its own statement after the other.
func TestARequestBesideAStatementThatHangsEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		g := &gather{verb: "share"}
		g.run = func(_ context.Context, _ string, reqs []lease.RenewRequest, _ wanted) []member {
			<-hangs
			return make([]member, len(reqs))
		}
		type ended struct {
			err  error
			took time.Duration
		}
		ask := func(ttl time.Duration) <-chan ended {
			end, began := make(chan ended, 1), time.Now()
			go func() {
				reqs := []lease.RenewRequest{{Lease: lease.Lease{Key: "k"}, TTL: ttl}}
				end <- ended{g.do(t.Context(), "", reqs)[0].err, time.Since(began)}
			}()
			synctest.Wait()
			return end
		}
		late := func(what string, end <-chan ended, bound time.Duration, sent bool) {
			t.Helper()
			select {
			case got := <-end:
				unknown := errors.Is(got.err, lease.ErrUnknown)
				if !errors.Is(got.err, adapter.ErrLate) || unknown != sent || got.took != bound+beyond {
					t.Errorf("%s: after %s, want %s: %v", what, got.took, bound+beyond, got.err)
				}
			case <-time.After(10 * bound):
				t.Errorf("%s: no end after %s", what, 10*bound)
			}
		}
		ask(time.Hour)
		late("an acquire", ask(time.Second), time.Second, false)
		late("a release", ask(0), usualLimit-beyond, false)
		next := ask(time.Hour)
		hangs <- struct{}{}
		synctest.Wait()
		late("beside the next statement", ask(time.Second), time.Second, false)
		hangs <- struct{}{}
		<-next
		ask(time.Hour)
		sent := ask(3 * time.Second)
		hangs <- struct{}{}
		late("under way", sent, 3*time.Second, true)
		hangs <- struct{}{}
	})
}
