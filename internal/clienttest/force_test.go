package clienttest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

var byHand = rowlock.Force{Reason: "stuck since Friday", By: "ada@ops"}

func take(t *testing.T, c *rowlock.Client, key string, f rowlock.Force) lease.Forced {
	t.Helper()
	done, err := c.ForceRelease(t.Context(), key, f)
	if err != nil {
		t.Fatalf("force release of %q: %v", key, err)
	}
	return done
}

func TestAHolderIsToldOfAForcedReleaseWithinOneRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log Journal
		s := memstore.New()
		var told []lease.Forced
		holder := Client(t, s, &rowlock.Config{
			TTL: 9 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Hooks: rowlock.Hooks{
				Forced: func(_ context.Context, f lease.Forced) { told = append(told, f) },
			},
		})
		ops := Client(t, s, nil)
		l := Take(t, holder, "k", rowlock.Note("nightly import"))
		began := time.Now()
		f := take(t, ops, "k", byHand)
		if f.Lease.Token != l.Token() || f.Raised != l.Token()+1 || !strings.HasSuffix(f.Note, "\tnightly import") {
			t.Errorf("the record is %+v", f)
		}
		<-l.Context().Done()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the holder was told after %s, want a third of the TTL at most", took)
		}
		WantIs(t, "the end of the lock", context.Cause(l.Context()), rowlock.ErrLost)
		synctest.Wait()
		for _, want := range []string{"taken away by an operator", "by=ada@ops", `reason="stuck since Friday"`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the holder's log does not have %s:\n%s", want, log.String())
			}
		}
		if len(told) != 1 || told[0].Key != "k" || told[0].By != "ada@ops" {
			t.Errorf("the hook was told %+v, want the record of k once", told)
		}
	})
}

// Also a waiter in the process of the holder, which would otherwise be handed the key.
func TestWaitersAreWokenByAForcedRelease(t *testing.T) {
	for _, fair := range []bool{false, true} {
		t.Run(fmt.Sprintf("fair %t", fair), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				cfg := func() *rowlock.Config { return &rowlock.Config{Fair: fair} }
				holder, other, ops := Client(t, s, cfg()), Client(t, s, cfg()), Client(t, s, cfg())
				Take(t, holder, "a")
				Take(t, holder, "b")
				there, here := Wait(t, other, "a"), Wait(t, holder, "b")
				synctest.Wait()
				began := time.Now()
				take(t, ops, "a", byHand)
				take(t, ops, "b", byHand)
				for _, w := range []<-chan Waited{there, here} {
					got := <-w
					if got.Err != nil {
						t.Fatal(got.Err)
					}
					defer Unlock(t, got.Lock)
				}
				if took := time.Since(began); took > 100*time.Millisecond {
					t.Errorf("the waiters were granted after %s", took)
				}
			})
		})
	}
}

func TestAWatchTellsWhatWasForced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c, other := Client(t, s, nil), Client(t, s, nil)
		old := Take(t, other, "a/1")
		take(t, c, "a/1", byHand) // before the watch
		Take(t, other, "a/free")
		Take(t, other, "a/next")
		Take(t, other, "b/not watched")
		w := watching(t, c, "a/")
		w.sort() // what one listing has is told in no order
		w.want(t, "a/free granted 1", "a/next granted 1")
		next := Wait(t, c, "a/next")
		synctest.Wait()
		take(t, c, "a/free", byHand)
		time.Sleep(time.Millisecond) // records of one time are told in no order
		take(t, c, "a/next", byHand)
		take(t, c, "b/not watched", byHand)
		defer Unlock(t, (<-next).Lock)
		time.Sleep(time.Second)
		w.want(t, "a/free forced 1", "a/next forced 1", "a/next granted 3")
		<-old.Context().Done()
	})
}

// denied is a store whose user may not read the records of forced releases.
type denied struct {
	*memstore.Store
	asked atomic.Int64
}

func (s *denied) ForceReleases(context.Context, lease.ForcedFilter) ([]lease.Forced, error) {
	s.asked.Add(1)
	return nil, lease.ErrPrivilege
}

func TestAWatchAsksForRecordsOnceIfItMayNotReadThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &denied{Store: memstore.New()}
		c := Client(t, s, nil)
		w := watching(t, c, "")
		l := Take(t, c, "k")
		time.Sleep(time.Minute)
		w.want(t, "k granted 1")
		if n := s.asked.Load(); n != 1 {
			t.Errorf("the records were asked for %d times in a minute, want once", n)
		}
		Unlock(t, l)
	})
}

func TestForcedReleasesOfANamespaceAreItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c := Client(t, s, nil)
		a, b := tenant(t, c, "a", rowlock.Quota{}), tenant(t, c, "b", rowlock.Quota{})
		Take(t, a, "k")
		inB := Take(t, b, "k")
		if f := take(t, a, "k", byHand); f.Key != "k" || f.Lease.Key != "k" {
			t.Errorf("the record of a namespace is %+v", f)
		}
		for _, want := range []struct {
			c    *rowlock.Client
			f    lease.ForcedFilter
			keys string
		}{
			{a, lease.ForcedFilter{}, "[k]"},
			{a, lease.ForcedFilter{Key: "k"}, "[k]"},
			{b, lease.ForcedFilter{}, "[]"},
			{b, lease.ForcedFilter{Key: "k"}, "[]"},
			{c, lease.ForcedFilter{Prefix: "a/"}, "[a/k]"},
		} {
			all, err := want.c.ForceReleases(t.Context(), want.f)
			keys := make([]string, len(all))
			for i, f := range all {
				keys[i] = f.Key
			}
			if fmt.Sprint(keys) != want.keys || err != nil {
				t.Errorf("records of %+v: %q, %v, want %s", want.f, keys, err, want.keys)
			}
		}
		WantAlive(t, inB)
	})
}

func TestAForcedReleaseIsRefusedWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c := Client(t, s, nil)
		l := Take(t, c, "k")
		for _, bad := range []struct {
			key  string
			f    rowlock.Force
			want error
		}{
			{"k", rowlock.Force{}, rowlock.ErrConfig},
			{"k", rowlock.Force{Reason: strings.Repeat("x", lease.MaxReason+1)}, rowlock.ErrConfig},
			{"k", rowlock.Force{Reason: "it is stuck", Token: l.Token() + 1}, rowlock.ErrNotHeld},
			{"free", rowlock.Force{Reason: "it is stuck"}, rowlock.ErrNotHeld},
			{"", rowlock.Force{Reason: "it is stuck"}, rowlock.ErrInvalidKey},
		} {
			_, err := c.ForceRelease(t.Context(), bad.key, bad.f)
			WantIs(t, fmt.Sprintf("%+v", bad.f), err, bad.want)
		}
		WantAlive(t, l)
		if _, err := c.ForceRelease(t.Context(), "k", rowlock.Force{Reason: "by default"}); err != nil {
			t.Error(err)
		}
		plain := Client(t, struct{ lease.Store }{s}, nil)
		_, err := plain.ForceRelease(t.Context(), "k", byHand)
		WantIs(t, "a store that keeps no record", err, rowlock.ErrUnsupported)
		_ = c.Close()
		_, err = c.ForceRelease(t.Context(), "k", byHand)
		WantIs(t, "after Close", err, rowlock.ErrClosed)
		_, err = c.ForceRelease(noContext, "k", byHand)
		WantIs(t, "a nil ctx", err, rowlock.ErrConfig)
	})
}
