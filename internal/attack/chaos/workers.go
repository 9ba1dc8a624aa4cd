//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

var workerFaults = []*fault{
	{
		name: "kill-worker", what: "kill -9 of a worker, holders and waiters in it, and its next life",
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return again(ctx, rng, 1200*time.Millisecond, func() error {
				r.team.KillOne(rng.IntN(r.workers))
				r.blows.note("kill -9 of a worker")
				return nil
			})
		},
	},
	{
		name: "stop-worker", what: "SIGSTOP of a worker for up to one and a half TTLs, then SIGCONT",
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return again(ctx, rng, 300*time.Millisecond, func() error {
				n := rng.IntN(r.workers)
				r.team.Signal(n, unix.SIGSTOP)
				time.Sleep(between(rng, ttl/3, 3*ttl/2)) // not until ctx ends: it must go on
				r.team.Signal(n, unix.SIGCONT)
				r.blows.note("SIGSTOP of a worker")
				return nil
			})
		},
	},
}
