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
	err := fmt.Errorf("%w: read: %w", lease.ErrUnknown, &fs.PathError{Err: context.DeadlineExceeded})
	after, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for _, ctx := range []context.Context{t.Context(), after} {
		for _, as := range []error{nil, lease.ErrBusy} {
			got := fmt.Errorf("more: %w", late.Told(ctx, err, as))
			if errors.Is(got, context.DeadlineExceeded) || !errors.Is(got, lease.ErrUnknown) ||
				!errors.As(got, new(*fs.PathError)) || errors.Is(got, lease.ErrBusy) != (as != nil) {
				t.Errorf("%v", got)
			}
		}
	}
	before, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	if late.Told(before, err, nil) != err {
		t.Error("the caller's own deadline is hidden")
	}
	for _, other := range []error{nil, lease.ErrBusy, context.Canceled} {
		if got := late.Told(t.Context(), other, nil); got != other {
			t.Errorf("%v became %v", other, got)
		}
	}
}
