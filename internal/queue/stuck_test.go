package queue_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/cleanup"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/queue"
	"github.com/rowlockdb/rowlock/lease"
)

// A release whose own transaction is open asks whether the row is locked. A database that takes
// most of a second for the answer is heard all the same, and the release, which could only wait, is
// not tried. The whole ends in time whatever the database does.
func TestAReleaseInsideItsOwnTransactionHearsALateAnswer(t *testing.T) {
	for late, guess := range map[time.Duration]bool{
		0: false, 900 * time.Millisecond: false, 1100 * time.Millisecond: true,
	} {
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { releaseInside(t, late, guess) })
		})
	}
}

func releaseInside(t *testing.T, late time.Duration, guess bool) {
	s := clienttest.NewScript()
	s.OnRenew = func(ctx context.Context, _ []lease.RenewRequest) ([]lease.Renewed, error) {
		defer func() { late = 0 }()
		select {
		case <-time.After(late):
			return []lease.Renewed{{Outcome: lease.Busy}}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	store := adapter.Of(s)
	orphans := cleanup.Start(store, false, slog.New(slog.DiscardHandler))
	defer func() { _ = orphans.Stop(t.Context()) }()
	r := &queue.Releaser{Store: store, Orphans: orphans, Queue: hung{}}
	defer r.Stop()
	held := lease.Lease{Key: "k", Owner: lease.NewOwner(), Token: 1}
	items := []queue.Release{{Lease: held, Fenced: true, Open: true}}
	began := time.Now()
	r.GiveUp(r.Within(t.Context()), items)
	if took := time.Since(began); !guess && took > time.Second || took > 2750*time.Millisecond {
		t.Errorf("took %v", took)
	}
	if items[0].Answer.Err == nil || strings.Contains(items[0].Answer.Err.Error(), "it seems") != guess {
		t.Errorf("a guess is wanted: %v; got %v", guess, items[0].Answer.Err)
	}
}

// hung releases nothing for as long as it may.
type hung struct{ queue.Queue }

func (hung) Kept(string) {}

func (hung) GiveUp(ctx context.Context, items []queue.Release) {
	<-ctx.Done()
	for i := range items {
		items[i].Answer.Err = ctx.Err()
	}
}
