package gocronrowlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	gocronrowlock "github.com/rowlockdb/rowlock/adapters/gocron"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// once starts a scheduler with one job that is due now, and returns the job's errors, of its run or
// of its lock.
func once(t *testing.T, task gocron.Task, by gocron.SchedulerOption, opts ...gocron.JobOption) <-chan error {
	t.Helper()
	s, err := gocron.NewScheduler(by)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown() })
	errs := make(chan error, 2)
	failed := func(_ uuid.UUID, _ string, err error) { errs <- err }
	opts = append(opts, gocron.WithEventListeners(
		gocron.AfterJobRunsWithError(failed), gocron.AfterLockError(failed),
		gocron.AfterJobRuns(func(uuid.UUID, string) { errs <- nil })))
	if _, err := s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), task, opts...); err != nil {
		t.Fatal(err)
	}
	s.Start()
	return errs
}

func nothing(context.Context) error { return nil }

func TestATickIsRunByTheFirstAndSkippedByTheOthers(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	held := rowlock.MinHold(time.Minute)
	for i, want := range []error{nil, rowlock.ErrHeld, rowlock.ErrHeld} {
		locker := gocronrowlock.NewLocker(adaptertest.Open(t, e), held)
		err := <-once(t, locker.Task(nothing), gocron.WithDistributedLocker(locker), gocron.WithName("report"))
		if !errors.Is(err, want) {
			t.Errorf("process %d: %v, want %v", i, err, want)
		}
	}
}

// gocron has one ctx for all runs of a job: one whose lock was lost may end as the next begins.
func TestARunThatHasLostItsLockLeavesTheNextItsOwn(t *testing.T) {
	t.Parallel()
	locks := adaptertest.Open(t, testdb.Kinds[0].Open(t))
	locker := gocronrowlock.NewLocker(locks)
	twice := lockerFunc(func(ctx context.Context, job string) (gocron.Lock, error) {
		lost, err := locker.Lock(ctx, job)
		if err != nil {
			return nil, err
		}
		if _, err := locks.ForceRelease(ctx, job, rowlock.Force{By: "test", Reason: "it hangs"}); err != nil {
			return nil, err
		}
		next, err := locker.Lock(ctx, job)
		_ = lost.Unlock(ctx)
		return next, err
	})
	if err := <-once(t, locker.Task(nothing), gocron.WithDistributedLocker(twice), gocron.WithName("report")); err != nil {
		t.Errorf("the next run ends with %v", err)
	}
}

type lockerFunc func(ctx context.Context, job string) (gocron.Lock, error)

func (f lockerFunc) Lock(ctx context.Context, job string) (gocron.Lock, error) { return f(ctx, job) }

func TestAnUncontendedTickCostsTwoStatements(t *testing.T) {
	t.Parallel()
	two := map[string][2]int{
		"postgres": {2, 2}, "mysql": {2, 2}, "mariadb": {2, 2},
		"sqlite": {5, 5}, // with a look, and PRAGMA synchronous before the release and after
	}
	adaptertest.CountTicks(t, "report", two, func(_ *testing.T, locks *rowlock.Client) func(*testing.T) {
		locker := gocronrowlock.NewLocker(locks)
		return func(t *testing.T) {
			t.Helper()
			t.Run("tick", func(t *testing.T) { // it ends with the scheduler, which has unlocked then
				<-once(t, locker.Task(nothing), gocron.WithDistributedLocker(locker), gocron.WithName("report"))
			})
		}
	})
}

func TestALostLockEndsItsJob(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	locker := gocronrowlock.NewLocker(adaptertest.Open(t, e))
	fenced := make(chan error, 1)
	errs := once(t, locker.Task(func(ctx context.Context) error {
		l, _ := rowlock.FromContext(ctx)
		adaptertest.Steal(t, e, l.Key())
		<-ctx.Done()
		fenced <- l.DoTx(t.Context(), adaptertest.Nothing)
		return nil
	}), gocron.WithDistributedLocker(locker), gocron.WithName("report"))
	adaptertest.WantIs(t, <-fenced, rowlock.ErrFenced)
	adaptertest.WantIs(t, <-errs, rowlock.ErrLost)
}

func TestATaskWithoutALockIsRefused(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	locker := gocronrowlock.NewLocker(adaptertest.Open(t, e))
	never := locker.Task(func(context.Context) error {
		t.Error("it ran")
		return nil
	})
	other := gocronrowlock.NewLocker(adaptertest.Open(t, e))
	adaptertest.WantIs(t, <-once(t, never, gocron.WithDistributedLocker(other), gocron.WithName("report")), gocronrowlock.ErrNoLock)
	adaptertest.WantIs(t, <-once(t, never, gocron.WithDistributedLocker(locker)), rowlock.ErrConfig) // without a name
	nilTask := once(t, locker.Task(nil), gocron.WithDistributedLocker(locker), gocron.WithName("nil"))
	adaptertest.WantIs(t, <-nilTask, rowlock.ErrConfig)
}

func TestOnlyTheLeaderRunsJobsAndTheNextWaitsForThem(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	first := gocronrowlock.NewElector(adaptertest.Open(t, e), "jobs")
	adaptertest.WantIs(t, first.IsLeader(t.Context()), gocronrowlock.ErrNoLock)
	ctx, resign := context.WithCancel(t.Context())
	ended := run(t, ctx, first)
	adaptertest.Eventually(t, "the first to lead", func() bool { return first.IsLeader(t.Context()) == nil })

	second := gocronrowlock.NewElector(adaptertest.Open(t, e), "jobs", election.Rest(time.Hour))
	last, stop := context.WithCancel(t.Context())
	ended2 := run(t, last, second)
	errs := once(t, first.Task(func(ctx context.Context) error {
		l, _ := rowlock.FromContext(ctx)
		resign()
		<-ctx.Done()
		adaptertest.WantIs(t, second.IsLeader(ctx), gocronrowlock.ErrNoLock)
		return l.DoTx(t.Context(), adaptertest.Nothing) // the leadership lasts until the job returns
	}), gocron.WithDistributedElector(first))
	if err := <-errs; err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	adaptertest.Eventually(t, "the second to lead", func() bool { return second.IsLeader(t.Context()) == nil })
	late := once(t, first.Task(nothing), gocron.WithDistributedElector(leads{}))
	adaptertest.WantIs(t, <-late, gocronrowlock.ErrNoLock)
	stop()
	<-ended2
}

// leads says so whatever is true.
type leads struct{}

func (leads) IsLeader(context.Context) error { return nil }

func run(t *testing.T, ctx context.Context, e *gocronrowlock.Elector) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	return ended
}
