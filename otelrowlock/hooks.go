package otelrowlock

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// Hooks are for rowlock.Config.Hooks of the one client. An application that has hooks of its own
// keeps them: telemetry.Hooks().Then(own).
func (t *Telemetry) Hooks() rowlock.Hooks {
	m := t.made
	return rowlock.Hooks{
		Acquired: t.acquired, HolderChanged: t.holderChanged, Releasing: t.releasing, Released: t.released,
		UnlockFailed: t.unlockFailed, Lost: t.lost, Renewed: t.renewed, Evicted: t.evicted,
		Expired:   func(ctx context.Context, _ string, _ rowlock.Token, _ *rowlock.HeldError) { m.expired.happened(ctx) },
		Forced:    func(ctx context.Context, _ lease.Forced) { m.forced.happened(ctx) },
		Suspected: func(ctx context.Context, _ rowlock.Suspicion) { m.suspected.happened(ctx) },
		Skewed:    func(ctx context.Context, _ time.Duration) { m.skewed.happened(ctx) },
	}
}

// renewed takes no class: a call renews leases of many keys.
func (t *Telemetry) renewed(ctx context.Context, _ int, took time.Duration) {
	t.made.renewal.Record(ctx, took.Seconds(), t.classes.None().record...)
}

func (t *Telemetry) evicted(ctx context.Context, _ string, _ int64, err error) {
	if err != nil {
		t.made.notEvicted.happened(ctx)
		return
	}
	t.made.evicted.happened(ctx)
}

// Moved is for paxosbridge.Config.Hooks.
func (t *Telemetry) Moved(string, int, int64, string) { t.made.moved.happened(context.Background()) }

// Stayed is for paxosbridge.Config.Hooks.
func (t *Telemetry) Stayed(string, error) { t.made.stayed.happened(context.Background()) }

// Recalled is for paxosbridge.Config.Hooks.
func (t *Telemetry) Recalled(string, int64) { t.made.recalled.happened(context.Background()) }
