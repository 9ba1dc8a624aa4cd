package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/robfig/cron/v3"

	gocronrowlock "github.com/rowlockdb/rowlock/adapters/gocron"
	cronrowlock "github.com/rowlockdb/rowlock/adapters/robfig"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/examples/internal/source"
)

// replicate is one replica of a service, which has the schedule as all others have it.
func replicate(ctx context.Context, cfg settings, out io.Writer) error {
	db, err := source.Open(ctx, cfg.db)
	if err != nil {
		return err
	}
	defer db.Close()
	locks, err := rowlock.Open(db, db.Dialect, &rowlock.Config{TTL: ttl})
	if err != nil {
		return err
	}
	defer locks.Close()
	job := func(ctx context.Context) error { return night(ctx, out) }
	if cfg.by == "robfig" {
		return byRobfig(ctx, locks, job)
	}
	return byGocron(ctx, locks, job)
}

// night is the job: some work, and a write that is refused if the lock was lost meanwhile.
func night(ctx context.Context, out io.Writer) error {
	l, _ := rowlock.FromContext(ctx)
	fmt.Fprintln(out, "runs with token", l.Token())
	select {
	case <-time.After(tick / 2):
	case <-ctx.Done(): // the lock is lost, or the replica ends
		return context.Cause(ctx)
	}
	return l.DoTx(ctx, func(context.Context, *sql.Tx) error { return nil }) // what the job writes
}

func byGocron(ctx context.Context, locks *rowlock.Client, job func(context.Context) error) error {
	locker := gocronrowlock.NewLocker(locks, rowlock.MinHold(tick*3/4))
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		return err
	}
	_, err = s.NewJob(gocron.CronJob("* * * * * *", true), locker.Task(job), gocron.WithName("nightly"))
	if err != nil {
		return err
	}
	s.Start()
	<-ctx.Done()
	return s.Shutdown()
}

func byRobfig(ctx context.Context, locks *rowlock.Client, job func(context.Context) error) error {
	c := cron.New()
	every, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse("* * * * * *")
	if err != nil {
		return err
	}
	nightly, err := cronrowlock.New(locks, "nightly", job, cronrowlock.Config{Schedule: every, Context: ctx})
	if err != nil {
		return err
	}
	c.Schedule(every, nightly)
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done()
	return nil
}
