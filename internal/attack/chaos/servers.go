//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

var serverFaults = []*fault{
	{
		name: "kill-server", what: "kill -9 of the server under load, and its recovery",
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return again(ctx, rng, time.Second, func() error { return r.crash(ctx) })
		},
	},
	{
		name: "stop-server", what: "SIGSTOP of the server for one to three TTLs",
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return again(ctx, rng, 600*time.Millisecond, func() error {
				r.server.signal(unix.SIGSTOP)
				time.Sleep(between(rng, ttl/2, 2*ttl))
				r.server.signal(unix.SIGCONT)
				r.blows.note("SIGSTOP of the server")
				return nil
			})
		},
	},
}

// crash kills the server and starts it again, and remembers how long that took.
func (r *round) crash(ctx context.Context) error {
	r.server.kill()
	r.blows.note("kill -9 of the server")
	fight.Sleep(ctx, 50*time.Millisecond)
	return r.server.start(context.WithoutCancel(ctx))
}
