package memstore_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

func TestInterestEndsExactlyInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, process := memstore.New(), lease.NewOwner()
		if err := s.Register(t.Context(), process, "", []string{"k"}, time.Second); err != nil {
			t.Fatal(err)
		}
		pause := time.Second - time.Nanosecond
		for _, want := range []bool{true, false} {
			time.Sleep(pause)
			pause = time.Nanosecond
			if got, err := s.Awaited(t.Context(), lease.NewOwner(), []string{"k"}); err != nil || got[0] != want {
				t.Errorf("awaited %v, %v; want %t", got, err, want)
			}
			l, _ := take(t, s, "k", time.Hour)
			if got, err := s.Release(t.Context(), []lease.Lease{l}); err != nil || got[0].Awaited != want {
				t.Errorf("released %+v, %v; want awaited %t", got, err, want)
			}
		}
	})
}

func TestWhatListenersHear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		ctx, cancel := context.WithCancel(t.Context())
		var heard []string
		go func() { _ = s.Listen(ctx, func(key string) { heard = append(heard, key) }) }()
		announce := func(keys ...string) {
			synctest.Wait()
			if err := s.Announce(t.Context(), keys); err != nil {
				t.Error(err)
			}
		}
		announce("a", "b")
		s.DropHints(true)
		announce("lost")
		s.DropHints(false)
		announce("c")
		cancel()
		announce("too late")
		if want := []string{"", "a", "b", "c"}; !slices.Equal(heard, want) {
			t.Errorf("heard %q, want %q", heard, want)
		}
	})
}
