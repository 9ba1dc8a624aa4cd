package gocronrowlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
)

// ErrNoLock is the error of a Task that was called without a lock. Its function was not called.
var ErrNoLock = errors.New("rowlock: gocron: the job has no lock")

// Locker is a gocron.Locker.
type Locker struct {
	locks *rowlock.Client
	opts  []rowlock.Option
	held  sync.Map // the locks, by the ctx of the job, which gocron has for all its runs
}

// NewLocker returns a Locker whose locks have the options.
func NewLocker(locks *rowlock.Client, opts ...rowlock.Option) *Locker {
	return &Locker{locks: locks, opts: opts}
}

// ofTask begins the name that gocron gives to a job without one: that of its function, Task's own.
const ofTask = "github.com/rowlockdb/rowlock/adapters/gocron."

// Lock is called by gocron. It does not wait: gocron skips the tick after ErrHeld, or any other
// error, and tells it to gocron.AfterLockError.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	if strings.HasPrefix(job, ofTask) {
		return nil, fmt.Errorf("%w: gocron: a job of Task has no name; give it gocron.WithName, or all "+
			"of them would share one lock", rowlock.ErrConfig)
	}
	lock, err := l.locks.TryLock(ctx, job, l.opts...)
	if err != nil {
		return nil, err
	}
	l.held.Store(ctx, lock)
	return unlocker(func(end context.Context) error {
		l.held.CompareAndDelete(ctx, lock) // the next run may have begun with the same ctx
		return lock.Unlock(end)
	}), nil
}

type unlocker func(context.Context) error

func (u unlocker) Unlock(ctx context.Context) error { return u(ctx) }

// Task returns a task that calls f with the lock in its ctx. The error is that of f, joined with
// ErrLost, ErrMaxHold or ErrIdle if the lock ended before f.
//
//go:noinline
func (l *Locker) Task(f func(ctx context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		lock, ok := l.held.Load(ctx)
		if !ok {
			return fmt.Errorf("%w: give its scheduler gocron.WithDistributedLocker with the Locker of the Task, and no Elector", ErrNoLock)
		}
		return under(ctx, lock.(*rowlock.Lock), f)
	})
}

// under calls f within a lock.
func under(ctx context.Context, lock *rowlock.Lock, f func(context.Context) error) error {
	if f == nil {
		return fmt.Errorf("%w: gocron: the function of job %q is nil", rowlock.ErrConfig, lock.Key())
	}
	ctx, cancel := lock.Within(ctx)
	defer cancel()
	err := f(ctx)
	cause := context.Cause(lock.Context())
	if cause == nil || errors.Is(cause, rowlock.ErrUnlocked) || errors.Is(err, cause) {
		return err
	}
	return errors.Join(err, fmt.Errorf("rowlock: gocron: the lock of %q ended before its job: %w", lock.Key(), cause))
}

// Elector is a gocron.Elector: all jobs run in the process that leads.
type Elector struct {
	locks *rowlock.Client
	name  string
	opts  []election.Option
	none  error // while another process leads

	mu   sync.Mutex
	lock *rowlock.Lock   // nil: another process leads
	term context.Context // ends when the leadership is to end
	jobs sync.WaitGroup
}

// NewElector returns a candidate in the election of a name. Its Run campaigns.
func NewElector(locks *rowlock.Client, name string, opts ...election.Option) *Elector {
	none := fmt.Errorf("%w: another process leads %q, or Run has not begun", ErrNoLock, name)
	return &Elector{locks: locks, name: name, opts: opts, none: none}
}

// Run campaigns until ctx ends: see election.Run, whose errors it returns. When the leadership is
// to end, the ctx of each Task ends, and the next leader begins when the tasks have returned, or
// when election.Drain has passed.
func (e *Elector) Run(ctx context.Context) error {
	return election.Run(ctx, e.locks, e.name, func(ctx context.Context, l *rowlock.Lock) error {
		e.set(l, ctx)
		<-ctx.Done()
		e.set(nil, nil)
		e.jobs.Wait()
		return nil
	}, e.opts...)
}

func (e *Elector) set(l *rowlock.Lock, term context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lock, e.term = l, term
}

// IsLeader is called by gocron. It asks no database. gocron skips the tick after an error.
func (e *Elector) IsLeader(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lock == nil {
		return e.none
	}
	return nil
}

// Task is Locker.Task with the leader's lock. If the term has ended since IsLeader, f is not called.
func (e *Elector) Task(f func(ctx context.Context) error) gocron.Task {
	return gocron.NewTask(func(ctx context.Context) error {
		e.mu.Lock()
		lock, term := e.lock, e.term
		if lock == nil {
			e.mu.Unlock()
			return e.none // and not IsLeader's, which is nil if a term begins meanwhile
		}
		e.jobs.Add(1)
		e.mu.Unlock()
		defer e.jobs.Done()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(term, func() { cancel(context.Cause(term)) })()
		return under(ctx, lock, f)
	})
}
