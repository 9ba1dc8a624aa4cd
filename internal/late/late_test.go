package late_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/late"
	"github.com/rowlockdb/rowlock/lease"
)

func TestADeadlineIsThatOfTheCallerOrNone(t *testing.T) {
	timeout := &fs.PathError{Err: context.DeadlineExceeded}
	unknown := fmt.Errorf("%w: read: %w", lease.ErrUnknown, timeout)
	after, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for _, ctx := range []context.Context{t.Context(), after} {
		for _, err := range []error{timeout, unknown} {
			got := late.Told(ctx, err)
			if errors.Is(got, context.DeadlineExceeded) || !errors.As(got, new(*fs.PathError)) ||
				errors.Is(got, lease.ErrUnknown) == errors.Is(got, lease.ErrBusy) ||
				errors.Is(got, lease.ErrUnknown) != (err == unknown) {
				t.Errorf("%v", got)
			}
			if again := late.Told(ctx, fmt.Errorf("more: %w", got)); errors.Is(again, context.DeadlineExceeded) {
				t.Errorf("wrapped: %v", again)
			}
		}
	}
	before, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	if late.Told(before, unknown) != unknown {
		t.Error("the caller's own deadline is hidden")
	}
	for _, other := range []error{nil, lease.ErrBusy, context.Canceled} {
		if got := late.Told(t.Context(), other); got != other {
			t.Errorf("%v became %v", other, got)
		}
	}
}
