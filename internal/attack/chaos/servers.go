//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"strconv"
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
		name: "stop-server", what: "SIGSTOP of the server for half a TTL to two TTLs",
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
	{
		name: "stop-session", what: "SIGSTOP of half of the server's sessions for up to one and a half TTLs, while the others go on",
		on: []string{"postgres"},
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return again(ctx, rng, 400*time.Millisecond, func() error { r.stopSessions(rng); return nil })
		},
	},
}

// stopSessions stops half of the sessions, as an overloaded machine may.
func (r *round) stopSessions(rng *rand.Rand) {
	all := words(r.server.ask(context.Background(), `SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE usename = 'app'`))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	some := all[:len(all)/2]
	send := func(sig unix.Signal) {
		for _, text := range some {
			if pid, err := strconv.Atoi(text); err == nil {
				_ = unix.Kill(pid, sig) // it may have gone
			}
		}
	}
	send(unix.SIGSTOP)
	time.Sleep(between(rng, ttl/2, 3*ttl/2))
	send(unix.SIGCONT)
	r.blows.note("SIGSTOP of half of the sessions")
}

// crash kills the server, and starts it again.
func (r *round) crash(ctx context.Context) error {
	r.server.kill()
	r.blows.note("kill -9 of the server")
	fight.Sleep(ctx, 50*time.Millisecond)
	return r.server.start(context.WithoutCancel(ctx))
}
