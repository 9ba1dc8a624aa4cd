package optimistic_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

var errClash = fmt.Errorf("%w: somebody", optimistic.ErrConflict)

func TestRetryIsBoundedAndReturnsTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		err := optimistic.Retry(t.Context(), func(context.Context) error {
			calls++
			return fmt.Errorf("%w: number %d", optimistic.ErrConflict, calls)
		}, optimistic.Tries(5))
		wantIs(t, err, optimistic.ErrConflict)
		wantSays(t, err, "after 5 tries", "number 5")
		if calls != 5 {
			t.Errorf("%d calls, want 5", calls)
		}
	})
}

// Pauses double, up to the longest, and differ among those who wait.
func TestRetryPausesLongerEachTimeAndNeverAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[time.Duration]bool{}
		for range 20 {
			var pauses []time.Duration
			last := time.Now()
			_ = optimistic.Retry(t.Context(), func(context.Context) error {
				pauses = append(pauses, time.Since(last))
				last = time.Now()
				return errClash
			}, optimistic.Tries(6), optimistic.Pauses(10*time.Millisecond, 40*time.Millisecond))
			for i, mean := range []time.Duration{10, 20, 40, 40, 40} {
				mean *= time.Millisecond
				if p := pauses[i+1]; p < mean/2 || p > mean*3/2 {
					t.Errorf("pause %d was %v, want %v give or take half", i+1, p, mean)
				}
			}
			seen[pauses[1]] = true
		}
		if len(seen) < 15 {
			t.Errorf("20 first pauses had %d lengths", len(seen))
		}
	})
}

func TestRetryTriesAgainOnlyWhatPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := errors.New("other")
		for _, c := range []struct {
			err   error
			calls int
		}{{nil, 1}, {other, 1}, {optimistic.ErrNotFound, 1}, {optimistic.ErrMiscount, 1}, {errClash, 2}, {lease.ErrBusy, 2}} {
			calls := 0
			err := optimistic.Retry(t.Context(), func(context.Context) error {
				calls++
				return c.err
			}, optimistic.Tries(2))
			if calls != c.calls || !errors.Is(err, c.err) {
				t.Errorf("%v: %d calls, %v", c.err, calls, err)
			}
		}
		calls := 0
		ok(t, optimistic.Retry(t.Context(), func(context.Context) error {
			if calls++; calls < 3 {
				return errClash
			}
			return nil
		}))
	})
}

func TestRetryEndsWithItsContextAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := optimistic.Retry(ctx, func(context.Context) error { return errClash }, optimistic.Pauses(time.Hour, time.Hour))
		wantIs(t, err, context.DeadlineExceeded, optimistic.ErrConflict)
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("it ended after %v", took)
		}
		err = optimistic.Retry(ctx, func(context.Context) error {
			t.Error("called although ctx has ended")
			return nil
		})
		wantIs(t, err, context.DeadlineExceeded)
	})
}
