package gocronrowlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	gocronrowlock "github.com/rowlockdb/rowlock/adapters/gocron"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMain(m *testing.M) { adaptertest.Main(m, work) }

// work runs a job at each tick, in one process at a time.
func work(ctx context.Context, w *adaptertest.Worker) error {
	locker := gocronrowlock.NewLocker(w.Locks)
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		return err
	}
	_, err = s.NewJob(gocron.DurationJob(50*time.Millisecond), locker.Task(func(ctx context.Context) error {
		l, _ := rowlock.FromContext(ctx)
		return w.Section(ctx, l)
	}), gocron.WithName("nightly"))
	if err != nil {
		return err
	}
	s.Start()
	<-ctx.Done()
	return s.Shutdown()
}

func TestProcessesThatAreKilledNeverCountATickTwice(t *testing.T) {
	t.Parallel()
	adaptertest.Contend(t, testdb.Kinds[0].Open(t))
}
