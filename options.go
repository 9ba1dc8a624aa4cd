package rowlock

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock/internal/acquire"
	"github.com/rowlockdb/rowlock/lease"
)

// Option changes one call of Lock, TryLock or Do.
type Option func(*request) error

// request is what one call asks for.
type request struct {
	acquire.Call
	margin, every, maxHold, minHold time.Duration
	onWait                          func(Waiting)
}

// TTL makes this lease last d unless renewed. Margin and renewal keep their proportions to it.
func TTL(d time.Duration) Option {
	return func(r *request) error {
		if d < minTTL {
			return fmt.Errorf("%w: TTL (%s) must be at least %s", lease.ErrConfig, d, minTTL)
		}
		r.margin = max(1, min(scale(r.margin, d, r.Want.TTL), d-2))
		if r.every > 0 {
			// Rounding must not make it late, nor 0, which is NoRenew.
			r.every = max(1, min(scale(r.every, d, r.Want.TTL), d-r.margin-1))
		}
		r.Want.TTL = d
		return nil
	}
}

func scale(v, to, from time.Duration) time.Duration {
	return time.Duration(float64(v) * float64(to) / float64(from))
}

// MaxHold ends this lock after d, renewed or not, with cause ErrMaxHold.
func MaxHold(d time.Duration) Option {
	return func(r *request) error {
		if d < minTTL {
			return fmt.Errorf("%w: MaxHold (%s) must be at least %s", lease.ErrConfig, d, minTTL)
		}
		r.maxHold = d
		return nil
	}
}

// MinHold keeps the key locked until d after it was granted, even if Unlock comes sooner: Unlock
// then ends the lock for its holder and leaves the lease to run out by the database's clock. It is
// for work that is done faster than clocks agree, as a scheduler's tick is: a caller that comes a
// little late finds the key held, and not free again. UnlockTx refuses such a lock before its time.
// The lease of a process that dies runs out as ever, which may be sooner.
func MinHold(d time.Duration) Option {
	return func(r *request) error {
		if d <= 0 {
			return fmt.Errorf("%w: MinHold (%s) must be more than 0; leave the option out", lease.ErrConfig, d)
		}
		r.minHold = d
		return nil
	}
}

// Priority orders this waiter among others of fair clients: 10 before 1, default 5. Each level is
// worth a head start of lease.PriorityStep (10 s) and no more, so that no waiter is overtaken for
// ever: of two, the waiter with the higher priority goes first unless the other has waited that
// much longer. It is otherwise ignored, except that a value out of range is refused.
func Priority(p int) Option {
	return func(r *request) error {
		if p < 1 || p > 10 {
			return fmt.Errorf("%w: Priority (%d) must be 1 to 10", lease.ErrConfig, p)
		}
		r.Want.Priority = p
		return nil
	}
}

// Note is shown to callers that find the key held: who, where, why. At most 255 bytes of UTF-8.
func Note(s string) Option {
	return func(r *request) error {
		switch {
		case len(s) > lease.MaxNote:
			return fmt.Errorf("%w: Note %.24q… has %d bytes; at most %d are allowed",
				lease.ErrConfig, s, len(s), lease.MaxNote)
		case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
			return fmt.Errorf("%w: Note %q must be UTF-8 without NUL", lease.ErrConfig, s)
		}
		r.Want.Note = s
		return nil
	}
}

// OnWait has f called, on the goroutine of this call, when it begins to wait and when its position
// has changed.
func OnWait(f func(Waiting)) Option {
	return func(r *request) error {
		r.onWait = f
		return nil
	}
}

// NoRenew leaves the lease alone: it ends TTL after it was granted, and its context a margin
// before.
func NoRenew() Option {
	return func(r *request) error {
		r.every = 0
		return nil
	}
}

func (r *request) apply(opts []Option) error {
	for i, o := range opts {
		if o == nil {
			return fmt.Errorf("%w: option %d is nil; leave it out", lease.ErrConfig, i+1)
		}
		if err := o(r); err != nil {
			return err
		}
	}
	if r.maxHold > 0 && r.minHold > r.maxHold {
		return fmt.Errorf("%w: MinHold (%s) must not be more than MaxHold (%s)",
			lease.ErrConfig, r.minHold, r.maxHold)
	}
	return nil
}
