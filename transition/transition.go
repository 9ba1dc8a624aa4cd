package transition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/notice"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
)

// ErrOrder is returned by Start and by calls for a lock if processes of two stages that do not
// follow each other are alive, or may be. Its text has the order to follow.
var ErrOrder = errors.New("rowlock: transition: wrong order")

// Stage is which locks a process takes.
type Stage uint8

const (
	// Both takes ours, and then the old lock.
	Both Stage = iota + 1
	// New takes ours alone, and looks whether the old lock is held.
	New
)

const order = "deploy Both to every process, then New to every process; go back the same way"

// Config says what is left for what.
type Config struct {
	// Stage is that of this process: Both in one deployment, New in the next.
	Stage Stage
	// Old is the lock that is left. With New it may be nil, once its server is gone: a process that
	// still holds it is then not seen.
	Old OldLock
	// Locks is the client of rowlock.Open. Notices is a store on the same tables, of rowlock.OpenTable,
	// for which two connections are enough: it keeps what was deployed, in leases of ten years.
	Locks   *rowlock.Client
	Notices lease.Store
	// Name tells apart what a database has of transitions. Default "locks".
	Name string
	// Quiet is for how long Both must have been deployed, and no old process seen, before New starts:
	// longer than old processes go without a lock. Default 1 h.
	Quiet time.Duration
	// Logger gets warnings: an old lock that was lost. Default slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Stage != Both && c.Stage != New:
		return c, fmt.Errorf("%w: transition: stage %d is none; use Both or New", lease.ErrConfig, c.Stage)
	case isnil.Value(c.Old) && c.Stage != New:
		return c, fmt.Errorf("%w: transition: Both without Config.Old", lease.ErrConfig)
	case c.Locks == nil || isnil.Value(c.Notices):
		return c, fmt.Errorf("%w: transition: Config.Locks or Config.Notices is nil", lease.ErrConfig)
	case c.Quiet < 0:
		return c, fmt.Errorf("%w: transition: Quiet (%s) is negative", lease.ErrConfig, c.Quiet)
	}
	if u, is := c.Old.(unfit); is {
		return c, u.error
	}
	c.Name, c.Quiet = cmp.Or(c.Name, "locks"), cmp.Or(c.Quiet, notice.Quiet)
	c.Logger = tell.Logger(cmp.Or(c.Logger, slog.Default())) // or one that blocks would block Unlock
	return c, nil
}

// Locks takes the locks of a stage.
type Locks struct {
	cfg     Config
	notices notices
}

// Start returns what takes the locks of a stage. It records that the stage is deployed, and returns
// ErrOrder for New if an old process may be left.
func Start(ctx context.Context, cfg Config) (*Locks, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Locks{cfg: cfg, notices: notices{cfg.Notices, cfg.Name}}
	if cfg.Stage == Both {
		return s, s.notices.record(ctx, notice.Both)
	}
	r, err := s.notices.read(ctx)
	if err != nil {
		return nil, err
	}
	if why := r.refusesNew(cfg.Quiet); why != "" {
		return nil, fmt.Errorf("%w: New: %s: %s", ErrOrder, why, order)
	}
	if r.SinceNew > 0 {
		return s, nil // recorded, as was read just now
	}
	return s, s.notices.record(ctx, notice.New)
}

// TryLock takes the locks on key if they are free, and otherwise returns ErrHeld at once.
func (s *Locks) TryLock(ctx context.Context, key string, opts ...rowlock.Option) (*Lock, error) {
	return s.take(ctx, key, false, opts)
}

// Lock waits for the locks on key until ctx ends.
func (s *Locks) Lock(ctx context.Context, key string, opts ...rowlock.Option) (*Lock, error) {
	return s.take(ctx, key, true, opts)
}

func (s *Locks) take(ctx context.Context, key string, wait bool, opts []rowlock.Option) (*Lock, error) {
	get := s.cfg.Locks.TryLock
	if wait {
		get = s.cfg.Locks.Lock
	}
	ours, err := get(ctx, key, opts...)
	if err != nil {
		return nil, err
	}
	l := &Lock{key: key, log: s.cfg.Logger, ours: ours, stop: make(chan struct{})}
	ctx, end := context.WithCancelCause(ctx) // not Within: the other lock may be of a client too, on this key
	defer end(nil)
	defer context.AfterFunc(ours.Context(), func() { end(context.Cause(ours.Context())) })()
	taken := false
	defer func() { // even if the old one panics
		if !taken {
			_ = l.Unlock(context.WithoutCancel(ctx))
		}
	}()
	err = s.takeOld(ctx, l, wait)
	if ours.Context().Err() != nil { // it was lost while the old one was awaited
		err = context.Cause(ours.Context())
	}
	if err != nil {
		return nil, err
	}
	if taken = true; l.old != nil {
		l.done.Go(l.keep)
	}
	return l, nil
}

// takeOld takes the old lock, or only looks at it. A process that holds it while this one holds ours
// takes the old one alone.
func (s *Locks) takeOld(ctx context.Context, l *Lock, wait bool) (err error) {
	if s.cfg.Stage == New {
		alone, err := s.seen(ctx, l.key)
		if err == nil && alone {
			err = fmt.Errorf("%w: %q is held by a process that takes the old lock alone: %s", ErrOrder, l.key, order)
		}
		return err
	}
	l.old, err = s.cfg.Old.Lock(ctx, l.key, false)
	if !errors.Is(err, lease.ErrHeld) {
		return err
	}
	if _, failed := s.seen(ctx, l.key); failed != nil {
		return failed
	}
	if wait {
		l.old, err = s.cfg.Old.Lock(ctx, l.key, true)
	}
	return err
}

// seen reports whether an old process holds key, and records that.
func (s *Locks) seen(ctx context.Context, key string) (alone bool, err error) {
	if isnil.Value(s.cfg.Old) {
		return false, nil
	}
	alone, err = s.cfg.Old.HeldAlone(ctx, key)
	if err == nil && alone {
		err = s.notices.record(ctx, notice.Seen)
	}
	if err != nil {
		err = fmt.Errorf("rowlock: transition: the old lock on %q: %w", key, err)
	}
	return alone, err
}
