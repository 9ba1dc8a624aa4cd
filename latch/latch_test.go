package latch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
)

func TestALatchOpensWhenAllPartiesHaveCountedDown(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		a, b := opened(t, r.process(t), "l", 3), opened(t, r.process(t), "l", 3)
		told := make(chan error, 1)
		go func() { told <- b.Await(soon(t)) }()
		for n, party := range []string{"x", "y"} {
			ok(t, a.CountDown(t.Context(), party))
			wantCount(t, b, 2-n)
		}
		notOpen(t, a)
		ok(t, b.CountDown(t.Context(), "z"))
		ok(t, <-told)
		ok(t, a.Await(soon(t)))
		ok(t, a.CountDown(t.Context(), "more"))
		wantCount(t, a, 0)
	})
}

// "A" and "a" are two parties, and a blank at the end makes another.
func TestAPartyCountsOnceHoweverOftenItCountsDown(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		s := []*latch.Latch{opened(t, r.process(t), "l", 5), opened(t, r.process(t), "l", 5)}
		inParallel(40, func(i int) {
			if err := s[i%2].CountDown(t.Context(), []string{"a", "A", "a ", "\x00\xff"}[i%4]); err != nil {
				t.Error(err)
			}
		})
		wantCount(t, s[0], 1)
		notOpen(t, s[1])
	})
}

func TestAResetBeginsAGenerationAndRefusesTheOldOne(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		p, q := r.process(t), r.process(t)
		old := opened(t, p, "l", 1)
		ok(t, old.CountDown(t.Context(), "x"))
		late := opened(t, q, "l", 1)
		next, err := old.Reset(t.Context())
		ok(t, err)
		if next.Generation() != 2 {
			t.Errorf("generation %d", next.Generation())
		}
		var stale *latch.StaleError
		for what, err := range map[string]error{
			"CountDown": late.CountDown(t.Context(), "x"), "Await": late.Await(soon(t)),
		} {
			if !errors.As(err, &stale) || stale.Generation != 1 || stale.Current != 2 {
				t.Errorf("%s: got %v", what, err)
			}
		}
		_, err = late.Count(t.Context())
		wantIs(t, err, latch.ErrStale)
		notOpen(t, next)
		again, err := late.Reset(t.Context()) // as after a lost answer
		ok(t, err)
		ok(t, again.CountDown(t.Context(), "x"))
		ok(t, next.Await(soon(t)))
		third, err := next.Reset(t.Context())
		ok(t, err)
		_, err = late.Reset(t.Context())
		wantIs(t, err, latch.ErrStale)
		notOpen(t, third)
	})
}

func TestAResetEndsTheWaits(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		l := opened(t, r.process(t), "l", 2)
		told := make(chan error, 1)
		go func() { told <- l.Await(soon(t)) }()
		notOpen(t, l)
		_, err := opened(t, r.process(t), "l", 2).Reset(t.Context())
		ok(t, err)
		wantIs(t, <-told, latch.ErrStale)
	})
}

func TestAnotherNumberOfPartiesIsRefused(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		opened(t, r.process(t), "l", 3)
		_, err := r.process(t).Open(t.Context(), "l", 4)
		var other *latch.PartiesError
		if !errors.As(err, &other) || other.Found != 3 || other.Parties != 4 || !errors.Is(err, latch.ErrParties) {
			t.Errorf("got %v", err)
		}
		if text := err.Error(); !strings.Contains(text, "3 parties") || !strings.Contains(text, "for 4") {
			t.Error(text)
		}
		if _, err := r.process(t).Barrier(t.Context(), "l", 4); err != nil {
			t.Errorf("a barrier of the name of a latch: %v", err)
		}
	})
}

func TestALatchThatDoesNotExistIsNotFound(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		s := r.process(t)
		_, err := s.Find(t.Context(), "none")
		wantIs(t, err, latch.ErrNotFound)
		l := opened(t, s, "l", 1)
		found, err := s.Find(t.Context(), "l")
		ok(t, err)
		if found.Parties() != 1 || found.Generation() != 1 || found.Name() != "l" {
			t.Errorf("found %+v", found)
		}
		r.expire(t)
		_, count := l.Count(t.Context())
		_, reset := l.Reset(t.Context())
		_, find := s.Find(t.Context(), "l")
		wantIs(t, l.Await(soon(t)), latch.ErrNotFound)
		wantIs(t, l.CountDown(t.Context(), "x"), latch.ErrNotFound)
		for _, err := range []error{count, reset, find} {
			wantIs(t, err, latch.ErrNotFound)
		}
	})
}

// The parties of a latch that has expired do not count for the next of its name.
func TestAnExpiredLatchBeginsAnew(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		s := r.process(t)
		for _, swept := range []bool{false, true} {
			name := fmt.Sprint("l", swept)
			old := opened(t, s, name, 1)
			ok(t, old.CountDown(t.Context(), "x"))
			r.expire(t)
			if swept {
				if n, err := s.Sweep(t.Context(), 1); err != nil || n < 2 {
					t.Errorf("%d rows removed; %v", n, err)
				}
			}
			l := opened(t, s, name, 2)
			wantCount(t, l, 2)
			wantIs(t, old.CountDown(t.Context(), "y"), latch.ErrStale)
			wantIs(t, old.Await(soon(t)), latch.ErrStale)
		}
	})
}

func TestASweepRemovesWhatIsOverAndNothingElse(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		s := r.process(t)
		for _, name := range []string{"a", "b", "c"} {
			l := opened(t, s, name, 2)
			inParallel(3, func(i int) { ok(t, l.CountDown(t.Context(), fmt.Sprint(i))) })
		}
		r.expire(t)
		live := opened(t, s, "d", 2)
		ok(t, live.CountDown(t.Context(), "x"))
		next, err := live.Reset(t.Context())
		ok(t, err)
		ok(t, next.CountDown(t.Context(), "y"))
		if n, err := s.Sweep(t.Context(), 2); err != nil || n != 3+9+1 {
			t.Errorf("%d rows removed; %v", n, err)
		}
		wantCount(t, next, 1)
		if n := r.count(t, `SELECT COUNT(*) FROM {rowlock_party}`); n != 1 {
			t.Errorf("%d parties are left", n)
		}
	})
}

func TestAwaitSaysWhatItWaitedFor(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		l := opened(t, r.process(t), "l", 3)
		ok(t, l.CountDown(t.Context(), "x"))
		for began := time.Now(); ; { // one that is canceled before it has looked knows no better
			ctx, cancel := context.WithCancel(t.Context())
			told := make(chan error, 1)
			go func() { told <- l.Await(ctx) }()
			notOpen(t, l)
			cancel()
			err := <-told
			wantIs(t, err, context.Canceled)
			if strings.Contains(err.Error(), "\n") {
				t.Error(err)
			}
			if strings.Contains(err.Error(), "2 of 3 parties") {
				return
			}
			if time.Since(began) > time.Minute {
				t.Fatal(err)
			}
		}
	})
}

func TestCloseEndsTheWaits(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		s := r.process(t)
		l := opened(t, s, "l", 2)
		told := make(chan error, 1)
		go func() { told <- l.Await(soon(t)) }()
		notOpen(t, l)
		ok(t, s.Close())
		wantIs(t, <-told, lease.ErrClosed)
		wantIs(t, l.CountDown(t.Context(), "x"), lease.ErrClosed)
		l.Wake()
	})
}
