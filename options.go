package rowlock

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock/lease"
)

// Option changes one call of Lock, TryLock or Do.
type Option func(*request) error

// request is what one call asks for.
type request struct {
	ttl, margin, every, maxHold, minHold time.Duration
	note                                 string
	priority                             int
	internal                             bool // the client's own lock: no hooks
	onWait                               func(Waiting)
}

// TTL makes this lease last d unless renewed. Margin and renewal keep their proportions to it.
func TTL(d time.Duration) Option {
	return func(r *request) error {
		if d < minTTL {
			return fmt.Errorf("%w: TTL (%s) must be at least %s", lease.ErrConfig, d, minTTL)
		}
		r.margin = max(1, min(scale(r.margin, d, r.ttl), d-2))
		if r.every > 0 {
			r.every = max(1, min(scale(r.every, d, r.ttl), d-r.margin-1)) // rounding must not make it late, nor 0, which is NoRenew
		}
		r.ttl = d
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

// MinHold keeps the key locked until d after it was granted, even if Unlock comes sooner: Unlock then gives the lock up for its holder
// and leaves the lease to run out by the database's clock. It is for work that is done faster than clocks agree, as a scheduler's
// tick is: whoever comes a little late finds the key held, and not free again. UnlockTx refuses such a lock before its time. The
// lease of a process that dies runs out as ever, which may be sooner.
func MinHold(d time.Duration) Option {
	return func(r *request) error {
		if d <= 0 {
			return fmt.Errorf("%w: MinHold (%s) must be more than 0; leave the option out", lease.ErrConfig, d)
		}
		r.minHold = d
		return nil
	}
}

// Priority orders this waiter among others of fair clients: 10 before 1, 5 unless said. Each level is worth a head start of
// lease.PriorityStep (10 s) and no more, so that nobody is overtaken for ever: of two, the one with the higher priority goes first
// unless the other has waited so much longer. A client that is not Fair takes note of nothing but a value out of range.
func Priority(p int) Option {
	return func(r *request) error {
		if p < 1 || p > 10 {
			return fmt.Errorf("%w: Priority (%d) must be 1 to 10", lease.ErrConfig, p)
		}
		r.priority = p
		return nil
	}
}

// Note is shown to others who find the key held: who, where, why. At most 255 bytes of UTF-8.
func Note(s string) Option {
	return func(r *request) error {
		switch {
		case len(s) > lease.MaxNote:
			return fmt.Errorf("%w: Note %.24q… has %d bytes; at most %d are allowed", lease.ErrConfig, s, len(s), lease.MaxNote)
		case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
			return fmt.Errorf("%w: Note %q must be UTF-8 without NUL", lease.ErrConfig, s)
		}
		r.note = s
		return nil
	}
}

// OnWait has f called, on the goroutine of this call, when it begins to wait and when what it waits for has changed.
func OnWait(f func(Waiting)) Option {
	return func(r *request) error {
		r.onWait = f
		return nil
	}
}

// NoRenew leaves the lease alone: it ends TTL after it was granted, and its context a margin before.
func NoRenew() Option {
	return func(r *request) error {
		r.every = 0
		return nil
	}
}

func (c *Client) request(opts []Option) (request, error) {
	r := request{ttl: c.cfg.TTL, margin: c.cfg.Margin, every: c.cfg.RenewEvery, maxHold: c.cfg.MaxHold, priority: 5}
	if len(opts) == 0 {
		return r, nil
	}
	return r.with(opts)
}

func (r request) with(opts []Option) (request, error) {
	for i, o := range opts {
		if o == nil {
			return r, fmt.Errorf("%w: option %d is nil; leave it out", lease.ErrConfig, i+1)
		}
		if err := o(&r); err != nil {
			return r, err
		}
	}
	if r.maxHold > 0 && r.minHold > r.maxHold {
		return r, fmt.Errorf("%w: MinHold (%s) must not be more than MaxHold (%s)", lease.ErrConfig, r.minHold, r.maxHold)
	}
	return r, nil
}
