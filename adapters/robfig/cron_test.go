package cronrowlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	cronrowlock "github.com/rowlockdb/rowlock/adapters/robfig"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// told is a Config that keeps what it is told.
func told(cfg cronrowlock.Config) (_ cronrowlock.Config, skipped, failed *error) {
	skipped, failed = new(error), new(error)
	cfg.Skipped = func(_ string, err error) { *skipped = err }
	cfg.Failed = func(_ string, err error) { *failed = err }
	return cfg, skipped, failed
}

// A process that is late by its clock, or comes back from a pause, finds that the tick was run, also
// where a run may take less time than that.
func TestATickIsRunOnceByAllProcesses(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	runs := 0
	for i := range 3 {
		cfg, skipped, failed := told(cronrowlock.Config{
			Schedule: every(time.Hour), Locking: []rowlock.Option{rowlock.MaxHold(time.Minute)},
		})
		job, err := cronrowlock.New(adaptertest.Open(t, e), "report", func(context.Context) error {
			runs++
			return nil
		}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		job.Run()
		if was := errors.Is(*skipped, rowlock.ErrHeld); was != (i > 0) || *failed != nil {
			t.Errorf("process %d: skipped %v, failed %v", i, *skipped, *failed)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs, want 1", runs)
	}
}

// MinHold leaves an owner in the row, which the fast statement, for keys that were released, does not
// take: the one that does is tried first.
func TestATickCostsTwoStatements(t *testing.T) {
	t.Parallel()
	runAndSkipped := map[string][2]int{
		"postgres": {2, 1}, "mysql": {2, 2}, "mariadb": {2, 2},
		"sqlite": {3, 1}, // the first is a read, in this process
	}
	adaptertest.CountTicks(t, "report", runAndSkipped, func(t *testing.T, locks *rowlock.Client) func(*testing.T) {
		t.Helper()
		cfg := cronrowlock.Config{Schedule: every(time.Hour)}
		job, err := cronrowlock.New(locks, "report", func(context.Context) error { return nil }, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return func(*testing.T) { job.Run() }
	})
}

// In the process's own zone the next tick would be seven hours later, and cron's would be skipped.
func TestTicksAreInTheLocationOfCron(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	_, local := time.Now().Zone()
	ahead := time.FixedZone("ahead", local+7*60*60)
	soon, err := cron.ParseStandard(fmt.Sprintf("0 %d * * *", (time.Now().In(ahead).Hour()+2)%24))
	if err != nil {
		t.Fatal(err)
	}
	locks := adaptertest.Open(t, e)
	job, err := cronrowlock.New(locks, "report", func(context.Context) error { return nil },
		cronrowlock.Config{Schedule: soon, Location: ahead})
	if err != nil {
		t.Fatal(err)
	}
	job.Run()
	rows, err := locks.Inspect(t.Context(), lease.Filter{Keys: []string{"report"}, Held: true})
	if err != nil || len(rows) != 1 || rows[0].Remaining > 2*time.Hour {
		t.Errorf("%+v, %v, want the key locked until shortly before a tick in two hours", rows, err)
	}
}

func TestALostLockEndsItsJob(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	cfg, _, failed := told(cronrowlock.Config{MinHold: time.Minute})
	job, err := cronrowlock.New(adaptertest.Open(t, e), "report", func(ctx context.Context) error {
		l, _ := rowlock.FromContext(ctx)
		adaptertest.Steal(t, e, l.Key())
		<-ctx.Done()
		adaptertest.WantIs(t, l.DoTx(t.Context(), adaptertest.Nothing), rowlock.ErrFenced)
		return nil
	}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	job.Run()
	adaptertest.WantIs(t, *failed, rowlock.ErrLost)
}

func TestAJobThatPanicsLeavesNoLockBehind(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	panics := cron.FuncJob(func() { panic("on purpose") })
	wrapped := cronrowlock.Wrapper(adaptertest.Open(t, e), "report", cronrowlock.Config{MinHold: time.Nanosecond})
	cron.NewChain(cron.Recover(cron.DiscardLogger), wrapped).Then(panics).Run()
	l, err := adaptertest.Open(t, e).TryLock(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAJobThatCannotKeepItsPromiseIsRefused(t *testing.T) {
	t.Parallel()
	locks := adaptertest.Open(t, testdb.Kinds[0].Open(t))
	run := func(context.Context) error { return nil }
	both := cronrowlock.Config{Schedule: every(time.Hour), MinHold: time.Minute}
	for _, refused := range []func() (*cronrowlock.Job, error){
		func() (*cronrowlock.Job, error) { return cronrowlock.New(locks, "k", run, cronrowlock.Config{}) },
		func() (*cronrowlock.Job, error) { return cronrowlock.New(locks, "k", run, both) },
		func() (*cronrowlock.Job, error) { return cronrowlock.New(locks, "k", nil, both) },
		func() (*cronrowlock.Job, error) { return cronrowlock.New(nil, "k", run, both) },
	} {
		_, err := refused()
		adaptertest.WantIs(t, err, rowlock.ErrConfig)
	}
}
