package leaderrowlock_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	leaderrowlock "github.com/rowlockdb/rowlock/adapters/client-go"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	adaptertest.Main(m, work)
}

// elect runs one elector until ctx ends, or its term does: when lead returns, at the latest.
func elect(ctx context.Context, lock *leaderrowlock.Lock, ttl time.Duration, lead func(ctx context.Context)) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true,
		LeaseDuration: ttl, RenewDeadline: ttl * 7 / 10, RetryPeriod: 50 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer end()
				lock.Leading(lead)(ctx)
			},
			OnStoppedLeading: func() {},
		},
	})
}

// work leads for one section, resigns, and is a candidate again.
func work(ctx context.Context, w *adaptertest.Worker) error {
	lock, err := leaderrowlock.New(w.Locks, "controller", fmt.Sprintf("process-%d", os.Getpid()))
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		elect(ctx, lock, adaptertest.TTL, func(ctx context.Context) {
			l, _ := rowlock.FromContext(ctx)
			_ = w.Section(ctx, l) // what matters is told by the section
		})
	}
	return nil
}

func TestProcessesThatAreKilledLeadOneAfterTheOther(t *testing.T) {
	t.Parallel()
	adaptertest.Contend(t, testdb.Kinds[0].Open(t))
}
