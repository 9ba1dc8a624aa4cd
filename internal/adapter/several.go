package adapter

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// CheckAll returns an error for requests that every store refuses: each that Acquire would refuse,
// and two for one key. It wraps lease.ErrConfig or lease.ErrInvalidKey.
func CheckAll(reqs []lease.AcquireRequest) error { return checkEach("acquire all", reqs) }

// CheckAny is CheckAll for a call that wants n of the keys. It also refuses an n that is less than
// 1 or more than there are requests.
func CheckAny(reqs []lease.AcquireRequest, n int) error {
	if n < 1 || n > len(reqs) {
		return fmt.Errorf("%w: acquire any: %d of %d keys; ask for at least one and for at most all",
			lease.ErrConfig, n, len(reqs))
	}
	return checkEach("acquire any", reqs)
}

func checkEach(what string, reqs []lease.AcquireRequest) error {
	seen := make(map[string]bool, len(reqs))
	for i := range reqs {
		r := &reqs[i]
		if err := r.Check(); err != nil {
			return err
		}
		if seen[r.Key] {
			return fmt.Errorf("%w: %s: %q comes twice; ask for each key once", lease.ErrConfig, what, r.Key)
		}
		seen[r.Key] = true
	}
	return nil
}

// AcquireAny asks for n of the keys, whichever are free, in the order of the requests. A store that
// cannot do that, or not with these keys, is asked key by key until n are granted: the caller then
// releases a part that was granted.
func (s *Store) AcquireAny(
	ctx context.Context, reqs []lease.AcquireRequest, n int,
) []lease.Acquired {
	if s.any == nil || len(reqs) == 1 {
		return until(ctx, reqs, n, s.Acquire)
	}
	answers, err := s.any.AcquireAny(ctx, reqs, n)
	if errors.Is(err, lease.ErrUnsupported) {
		return until(ctx, reqs, n, s.Acquire)
	}
	return acquired("acquire any", answers, err, len(reqs))
}

// ClaimAny is AcquireAny in the queue's order: a key is granted only at the head of its queue. It
// asks key by key.
func (s *Store) ClaimAny(ctx context.Context, reqs []lease.AcquireRequest, n int) []lease.Acquired {
	return until(ctx, reqs, n, s.Claim)
}

// until asks for one key after the other until n are granted. It asks for no further key if the
// database hangs or is down, or has no connection: each key would take as long as the whole call
// may. A key that it did not ask for is Possible.
func until(
	ctx context.Context, reqs []lease.AcquireRequest, n int,
	ask func(context.Context, []lease.AcquireRequest) []lease.Acquired,
) []lease.Acquired {
	answers := make([]lease.Acquired, len(reqs))
	for i := range reqs {
		answers[i].Possible = true
	}
	for i := 0; i < len(reqs) && n > 0; i++ {
		answers[i] = ask(ctx, reqs[i:i+1])[0]
		switch err := answers[i].Err; {
		case answers[i].Granted:
			n--
		case errors.Is(err, lease.ErrUnknown), errors.Is(err, ErrLate), IsOutage(err), ctx.Err() != nil:
			return answers
		}
	}
	return answers
}
