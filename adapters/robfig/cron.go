package cronrowlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/rowlockdb/rowlock"
)

// Config says when a tick counts as run, and where to tell of ticks.
type Config struct {
	// Schedule is that of the job, as cron.ParseStandard returns it. After a run the key stays locked
	// for three quarters of the time to the next tick, however short the run is: a process whose
	// clock is late by less finds that the tick was run. At most 24 h.
	Schedule cron.Schedule
	// Location is what cron.WithLocation has. In another zone a schedule without CRON_TZ has other
	// ticks, and a key that is kept for these has cron's skipped. Default time.Local, as cron's.
	Location *time.Location
	// MinHold is the same as a fixed time. One of the two must be set.
	MinHold time.Duration
	// Context is the one that the ctx of each run is made of. Default context.Background.
	Context context.Context
	// Locking are options of the lock: a TTL, a Note, MaxHold.
	Locking []rowlock.Option
	// Skipped is called for a tick that another process runs or has run, with its *HeldError. Default:
	// nothing is told.
	Skipped func(key string, err error)
	// Failed is called with the error of a run, and of a lock that could not be taken or was lost.
	// Default: slog.Error.
	Failed func(key string, err error)
}

// Job is a cron.Job that one process runs at each tick.
type Job struct {
	locks *rowlock.Client
	key   string
	f     func(ctx context.Context) error
	cfg   Config
}

// New returns a job that calls f under the lock on key. The ctx of f ends with the lock, and
// rowlock.FromContext returns the lock.
func New(locks *rowlock.Client, key string, f func(ctx context.Context) error, cfg Config) (*Job, error) {
	switch {
	case locks == nil:
		return nil, fmt.Errorf("%w: cron: %q: locks is nil; open a client with rowlock.Open", rowlock.ErrConfig, key)
	case f == nil:
		return nil, fmt.Errorf("%w: cron: %q: the function is nil", rowlock.ErrConfig, key)
	case (cfg.Schedule == nil) == (cfg.MinHold <= 0):
		return nil, fmt.Errorf("%w: cron: %q: set Schedule or MinHold, and not both: without them a process "+
			"whose clock is late runs a tick again", rowlock.ErrConfig, key)
	}
	cfg.Context = cmp.Or(cfg.Context, context.Background())
	cfg.Location = cmp.Or(cfg.Location, time.Local)
	if cfg.Skipped == nil {
		cfg.Skipped = func(string, error) {}
	}
	if cfg.Failed == nil {
		cfg.Failed = func(key string, err error) { slog.Error(err.Error(), "key", key) }
	}
	return &Job{locks, key, f, cfg}, nil
}

// Wrapper returns a cron.JobWrapper that does the same with a job that has no ctx: it is not told of
// a lost lock and cannot fence. Its cfg is checked when the chain is made: it panics as
// regexp.MustCompile does.
func Wrapper(locks *rowlock.Client, key string, cfg Config) cron.JobWrapper {
	return func(wrapped cron.Job) cron.Job {
		job, err := New(locks, key, func(context.Context) error {
			wrapped.Run()
			return nil
		}, cfg)
		if err != nil {
			panic(err)
		}
		return job
	}
}

// Run is called by cron at each tick. It does not wait for the lock.
func (j *Job) Run() {
	held := rowlock.MinHold(j.minHold(time.Now().In(j.cfg.Location)))
	l, err := j.locks.TryLock(j.cfg.Context, j.key, append([]rowlock.Option{held}, j.cfg.Locking...)...)
	if errors.Is(err, rowlock.ErrHeld) {
		j.cfg.Skipped(j.key, err)
		return
	}
	if err == nil {
		err = j.under(l)
	}
	if err != nil {
		j.cfg.Failed(j.key, err)
	}
}

// under calls f within the lock. A release that the database could not do is tried again by the
// client.
func (j *Job) under(l *rowlock.Lock) (err error) {
	defer func() { // also after a panic
		unlock := l.Unlock(j.cfg.Context)
		for _, cause := range []error{rowlock.ErrLost, rowlock.ErrMaxHold, rowlock.ErrIdle} {
			if errors.Is(unlock, cause) && !errors.Is(err, cause) {
				err = errors.Join(err, fmt.Errorf("rowlock: cron: the lock ended before its job: %w", unlock))
			}
		}
	}()
	ctx, cancel := l.Within(j.cfg.Context)
	defer cancel()
	return j.f(ctx)
}

// minHold is for how long a tick of now counts as run.
func (j *Job) minHold(now time.Time) time.Duration {
	if j.cfg.Schedule == nil {
		return j.cfg.MinHold
	}
	next := j.cfg.Schedule.Next(now)
	if next.IsZero() { // cron finds none within five years
		return 24 * time.Hour
	}
	return min(next.Sub(now)*3/4, 24*time.Hour)
}
