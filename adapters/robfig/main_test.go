package cronrowlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	cronrowlock "github.com/rowlockdb/rowlock/adapters/robfig"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMain(m *testing.M) { adaptertest.Main(m, work) }

// every is a schedule with ticks at whole multiples, which cron's own has from a second on.
type every time.Duration

func (e every) Next(after time.Time) time.Time {
	return after.Truncate(time.Duration(e)).Add(time.Duration(e))
}

func work(ctx context.Context, w *adaptertest.Worker) error {
	job, err := cronrowlock.New(w.Locks, "nightly", func(ctx context.Context) error {
		l, _ := rowlock.FromContext(ctx)
		return w.Section(ctx, l)
	}, cronrowlock.Config{MinHold: time.Millisecond})
	if err != nil {
		return err
	}
	c := cron.New()
	c.Schedule(every(50*time.Millisecond), job)
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done()
	return nil
}

func TestProcessesThatAreKilledNeverCountATickTwice(t *testing.T) {
	t.Parallel()
	adaptertest.Contend(t, testdb.Kinds[0].Open(t))
}
