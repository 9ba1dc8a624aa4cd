package semaphore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/opening"
	"github.com/rowlockdb/rowlock/lease"
)

// Max is the largest limit.
const Max = lease.MaxSlots

// ErrLimit is what a [*LimitError] is: this process uses another limit than is in force.
var ErrLimit = lease.ErrLimit

// LimitError names the limit that this process uses and the one in force.
type LimitError = lease.LimitError

// Semaphore grants at most a number of permits at a time. It is safe for concurrent use, and needs
// no Close. Use one per process and name, because a release wakes the waiters of its own.
type Semaphore struct {
	settings
	locks *rowlock.Client
	name  string
	freed chan struct{} // a permit of this process was released
	line  line

	mu    sync.Mutex
	limit int
	joins bool // has found its limit in force
}

// Option changes a Semaphore.
type Option func(*settings) error

type settings struct {
	locking []rowlock.Option
	inOrder bool
}

// With gives options to the locks of the permits: a TTL, a Note, MaxHold.
func With(opts ...rowlock.Option) Option {
	return func(s *settings) error {
		s.locking = append(s.locking, opts...)
		return nil
	}
}

// InOrder has all calls take their turn, in the order that the client gives its locks: in a Fair
// client that of all processes. All processes must use it, or those that do not go first.
func InOrder() Option {
	return func(s *settings) error {
		s.inOrder = true
		return nil
	}
}

// New returns the semaphore of that name. It asks the database for nothing: the first call makes
// the semaphore with this limit, or finds that another is in force. Its error is rowlock.ErrConfig
// for a client or an option that is nil and a limit that is not 1 to Max, and rowlock.ErrInvalidKey
// for a name that is empty or has more than 239 bytes.
func New(locks *rowlock.Client, name string, limit int, opts ...Option) (*Semaphore, error) {
	if locks == nil {
		return nil, fmt.Errorf("%w: semaphore.New of %.40q: the client is nil", rowlock.ErrConfig, name)
	}
	s := &Semaphore{locks: locks, name: name, limit: limit, freed: make(chan struct{}, 1)}
	if err := check(name, limit); err != nil {
		return nil, err
	}
	if err := opening.Apply(fmt.Sprintf("semaphore %q", name), &s.settings, opts); err != nil {
		return nil, err
	}
	return s, nil
}

// maxName leaves room for "semaphore/" and "/000" in a key.
const maxName = lease.MaxKey - len("semaphore/") - len("/queue")

func check(name string, limit int) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name of a semaphore is empty", rowlock.ErrInvalidKey)
	case len(name) > maxName:
		return fmt.Errorf("%w: the semaphore %.40q… has a name of %d bytes; at most %d are allowed",
			rowlock.ErrInvalidKey, name, len(name), maxName)
	case limit < 1 || limit > Max:
		return fmt.Errorf("%w: semaphore %q with the limit %d; 1 to %d are allowed", rowlock.ErrConfig, name,
			limit, Max)
	}
	return nil
}

// Name returns the semaphore's name.
func (s *Semaphore) Name() string { return s.name }

// QueueKey is the key that the one waiter of a semaphore holds that asks for slots.
func QueueKey(name string) string { return "semaphore/" + name + "/queue" }

func (s *Semaphore) of(limit int) lease.Limit {
	return lease.Limit{Name: "semaphore/" + s.name, Slots: limit}
}

// Limit returns the limit in force, and joins as the first Acquire does.
func (s *Semaphore) Limit(ctx context.Context) (int, error) {
	if err := isnil.Context("semaphore", ctx); err != nil {
		return 0, err
	}
	found, err := s.locks.MakeLimit(ctx, s.of(s.seen()))
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.joins && found.Slots != s.limit {
		return 0, &LimitError{Name: found.Name, Slots: s.limit, Found: found.Slots}
	}
	s.limit, s.joins = found.Slots, true
	return found.Slots, nil
}

// known returns the limit that this process has last found in force.
func (s *Semaphore) known(ctx context.Context) (int, error) {
	s.mu.Lock()
	limit, joins := s.limit, s.joins
	s.mu.Unlock()
	if joins {
		return limit, nil
	}
	return s.Limit(ctx)
}

// Resize changes the limit in all processes. It takes no permit away: while more are held than the
// new limit, none is granted. If its outcome is unknown the error wraps rowlock.ErrUnknown: repeat
// it, or ask Limit.
func (s *Semaphore) Resize(ctx context.Context, limit int) error {
	if err := cmp.Or(isnil.Context("semaphore", ctx), check(s.name, limit)); err != nil {
		return err
	}
	if _, err := s.known(ctx); err != nil {
		return err
	}
	if err := s.locks.ResizeLimit(ctx, s.of(limit)); err != nil {
		return err
	}
	s.changed()
	return nil
}

// changed has the waiters of this process ask, because slots may be free.
func (s *Semaphore) changed() {
	s.line.refused(Max)
	s.wake()
}

func (s *Semaphore) wake() {
	select {
	case s.freed <- struct{}{}:
	default: // a wake-up is on its way
	}
}

// TryAcquire returns a permit for n slots, or else a [*FullError] at once, which is a
// rowlock.ErrHeld.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Permit, error) {
	if err := s.checkN(ctx, n); err != nil {
		return nil, err
	}
	if s.inOrder {
		turn, err := s.locks.TryLock(ctx, QueueKey(s.name))
		if errors.Is(err, rowlock.ErrHeld) {
			return nil, &FullError{Name: s.name, Wanted: n, Limit: s.seen(), Waited: true}
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = turn.Unlock(ctx) }()
	}
	return s.try(ctx, n)
}

func (s *Semaphore) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit
}

func (s *Semaphore) checkN(ctx context.Context, n int) error {
	if err := isnil.Context("semaphore", ctx); err != nil {
		return err
	}
	most := Max // another process may have made the limit larger
	s.mu.Lock()
	if !s.joins {
		most = s.limit
	}
	s.mu.Unlock()
	if n < 1 || n > most {
		return s.tooMany(n, most)
	}
	return nil
}

func (s *Semaphore) tooMany(n, most int) error {
	return fmt.Errorf("%w: %d permits of semaphore %q; 1 to %d are allowed", rowlock.ErrConfig, n, s.name, most)
}

// try asks once under the limit in force.
func (s *Semaphore) try(ctx context.Context, n int) (*Permit, error) {
	all, err := s.tryFor(ctx, n, []rowlock.SlotCall{{Ctx: ctx, N: n}})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// tryFor asks once for several calls, which want n slots together.
func (s *Semaphore) tryFor(ctx context.Context, n int, calls []rowlock.SlotCall) ([]*Permit, error) {
	for {
		limit, err := s.known(ctx)
		if err != nil {
			return nil, err
		}
		if n > limit { // it may have been made larger since
			if limit, err = s.Limit(ctx); err == nil && n > limit {
				err = s.tooMany(n, limit)
			}
			if err != nil {
				return nil, err
			}
		}
		all, err := s.locks.TrySlotsFor(ctx, s.of(limit), calls, s.locking...)
		var other *LimitError
		switch {
		case err == nil:
			permits := make([]*Permit, len(all))
			for i, locks := range all {
				permits[i] = newPermit(s, locks)
			}
			return permits, nil
		case errors.As(err, &other) && !errors.Is(err, rowlock.ErrUnknown):
			// It was resized, or a failover has forgotten that it was made.
			if _, err := s.Limit(ctx); err != nil {
				return nil, err
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		case errors.Is(err, rowlock.ErrHeld) && !errors.Is(err, rowlock.ErrUnknown):
			return nil, &FullError{Name: s.name, Wanted: n, Limit: limit, free: limit - held(err)}
		default:
			return nil, err
		}
	}
}

// held is how many slots an error names that are held.
func held(err error) int {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return len(several.Unwrap())
	}
	return 1
}
