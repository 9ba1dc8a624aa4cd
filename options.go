package rowlock

import (
	"database/sql"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock/internal/queue"
	"github.com/rowlockdb/rowlock/internal/tenant"
	"github.com/rowlockdb/rowlock/lease"
)

// Option changes one call of Lock, TryLock or Do.
type Option func(*request) error

// request is what one call asks for.
type request struct {
	queue.Call
	margin, every, maxHold, minHold, maxIdle time.Duration

	onWait    func(Waiting)
	space     *tenant.Space // of its keys, in which it counts
	tx        sql.TxOptions
	reentrant bool
	given     given
}

// given says which options a call has named itself: those that a Reentrant call compares with the
// lock that it shares.
type given uint8

const (
	givenTTL given = 1 << iota
	givenNoRenew
	givenMaxHold
	givenMinHold
	givenMaxIdle
	givenReentrant // or it is the client's default, which DoTx does not refuse

	// Of DoTx alone, which takes them away.
	givenTxOptions
	givenShared
)

// maxMinHold bounds MinHold, because the lease outlives the process that could undo it.
const maxMinHold = 24 * time.Hour

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
		r.given |= givenTTL
		return nil
	}
}

func scale(v, to, from time.Duration) time.Duration {
	return time.Duration(float64(v) * float64(to) / float64(from))
}

// MaxHold ends this lock after d, renewed or not, with cause ErrMaxHold.
func MaxHold(d time.Duration) Option {
	return endsAfter("MaxHold", d, givenMaxHold, func(r *request) *time.Duration { return &r.maxHold })
}

// endsAfter is an option after which time a lock ends.
func endsAfter(name string, d time.Duration, sets given, of func(*request) *time.Duration) Option {
	return func(r *request) error {
		if d < minTTL {
			return fmt.Errorf("%w: %s (%s) must be at least %s", lease.ErrConfig, name, d, minTTL)
		}
		*of(r) = d
		r.given |= sets
		return nil
	}
}

// MaxIdle ends this lock with cause ErrIdle unless its holder calls Lock.Progress at least every d,
// counted from the return of Lock. The lock ends at that moment and not at a later renewal, by the
// process's monotonic clock. A process that was stopped for longer than d has shown no progress:
// its lock ends when it goes on, if only with a call of Progress.
//
// The end is that of MaxHold: the context is canceled, Fence refuses, waiting callers of this
// client ask again. The key itself is free when the holder calls Unlock, or when the lease runs
// out.
func MaxIdle(d time.Duration) Option {
	return endsAfter("MaxIdle", d, givenMaxIdle, func(r *request) *time.Duration { return &r.maxIdle })
}

// MinHold keeps the key locked until d after it was granted, even if Unlock comes sooner: Unlock
// then ends the lock for its holder and leaves the lease to run out by the database's clock. It is
// for work that is done faster than clocks agree, as a scheduler's tick is: a caller that comes a
// little late finds the key held, and not free again. UnlockTx refuses such a lock before its time.
// The lease of a process that dies runs out as ever, which may be sooner. So does that of a holder
// that unlocks long after MaxHold, which may be shorter than MinHold.
//
// Lock.UnlockNow frees the key all the same, also after Unlock, for work that has failed. Only this
// process can do that, so d is at most 24 h: to do work once in a longer time, use package once.
func MinHold(d time.Duration) Option {
	return func(r *request) error {
		if d <= 0 {
			return fmt.Errorf("%w: MinHold (%s) must be more than 0; leave the option out", lease.ErrConfig, d)
		}
		if d > maxMinHold {
			return fmt.Errorf("%w: MinHold (%s) must be at most %s, because no other process can undo it: "+
				"to do work once in a longer time, use package once", lease.ErrConfig, d, maxMinHold)
		}
		r.minHold = d
		r.given |= givenMinHold
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

// Note is shown to callers that find the key held, beside Config.Identity: what the lock is for. At
// most 255 bytes of UTF-8.
func Note(s string) Option {
	return func(r *request) error {
		switch {
		case len(s) > lease.MaxNote:
			return fmt.Errorf("%w: Note %.24q… has %d bytes; at most %d are allowed",
				lease.ErrConfig, s, len(s), lease.MaxNote)
		case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
			return fmt.Errorf("%w: Note %q must be UTF-8 without NUL", lease.ErrConfig, s)
		}
		r.note(s)
		return nil
	}
}

// note puts s behind the identity of the client.
func (r *request) note(s string) {
	identity, _ := lease.SplitNote(r.Want.Note)
	r.Want.Note = lease.StoredNote(identity, s)
}

// OnWait has f called, on the goroutine of this call, when it begins to wait and when its position
// has changed. A nil f is refused.
func OnWait(f func(Waiting)) Option {
	return func(r *request) error {
		if f == nil {
			return fmt.Errorf("%w: OnWait's function is nil; leave the option out", lease.ErrConfig)
		}
		r.onWait = f
		return nil
	}
}

// Reentrant lets a call lock a key that its ctx holds already, as a recursive function does: it
// returns another handle of the same lease, with the same token. The key is free after the last
// Unlock. A key that its ctx does not hold, or no longer, is locked as ever.
//
// The lock stays as its first call has asked for it: MaxHold counts from there. TTL, NoRenew,
// MaxHold, MinHold and MaxIdle may be given again with the same value, as a recursive function
// does. Another value is refused with ErrConfig. Note, Priority and OnWait are ignored, and so are
// the defaults of another client's Config.
//
// The ctx is that of Lock.Context, of Locks.Context, or that Do gives to its function. Goroutines
// that share such a ctx share the lock: they do not exclude each other. That is why it is not the
// default.
func Reentrant() Option {
	return func(r *request) error {
		r.reentrant, r.given = true, r.given|givenReentrant
		return nil
	}
}

// NoRenew leaves the lease alone: it ends TTL after it was granted, or after Downgrade began, and
// its context a margin before.
func NoRenew() Option {
	return func(r *request) error {
		r.every = 0
		r.given |= givenNoRenew
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
	if r.given&(givenTxOptions|givenShared) != 0 {
		return fmt.Errorf("%w: TxOptions and Shared are options of DoTx; leave them out, and use RLock to share "+
			"a key", lease.ErrConfig)
	}
	if r.minHold > 0 {
		r.Want.Note = lease.LapsingNote(lease.SplitNote(r.Want.Note))
	}
	// One of the two may be the client's default: then the earlier end counts.
	if both := givenMaxHold | givenMaxIdle; r.given&both == both && r.maxIdle > r.maxHold {
		return fmt.Errorf("%w: MaxIdle (%s) must not be more than MaxHold (%s), which ends the lock before",
			lease.ErrConfig, r.maxIdle, r.maxHold)
	}
	return nil
}

// TxOptions is for DoTx alone: how its transaction begins. A transaction that may not write is
// refused.
func TxOptions(o sql.TxOptions) Option {
	return func(r *request) error {
		if o.ReadOnly {
			return fmt.Errorf("%w: TxOptions: ReadOnly: the transaction writes the lock's row; leave it out",
				lease.ErrConfig)
		}
		r.tx, r.given = o, r.given|givenTxOptions
		return nil
	}
}

// Shared is for DoTx alone: it shares the key as RLock does.
func Shared() Option {
	return func(r *request) error {
		r.Want.Shared, r.given = true, r.given|givenShared
		return nil
	}
}
