//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/proxy"
)

var networkFaults = []*fault{
	{
		name: "cut", what: "all connections of a worker cut, and refused for up to two TTLs",
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return r.partition(ctx, rng, "cut", func(p *proxy.Proxy) {
				if rng.IntN(2) == 0 {
					p.Cut()
					return
				}
				p.Refuse()
			})
		},
	},
	{
		name: "one-way", what: "requests or replies of a worker stuck for up to two TTLs, and delivered then or never",
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return r.partition(ctx, rng, "one way cut", func(p *proxy.Proxy) { p.Stall(proxy.Direction(rng.IntN(2))) })
		},
	},
	{
		name: "delay", what: "requests and replies delayed by 0 to 80 ms, and one in twenty by up to a TTL, as after a loss",
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			for n, p := range r.proxies {
				for _, d := range []proxy.Direction{proxy.Up, proxy.Down} {
					p.Delay(d, slowly(r.seed, uint64(n), uint64(d)))
				}
			}
			r.blows.note("slow network")
			<-ctx.Done()
			return nil
		},
	},
}

// slowly draws delays. Each is asked for by several connections.
func slowly(seed, n, d uint64) func() time.Duration {
	draws := make(chan time.Duration, 1)
	rng := rand.New(rand.NewPCG(seed, n*2+d))
	next := func() time.Duration {
		if rng.IntN(20) == 0 {
			return between(rng, 0, ttl)
		}
		return between(rng, 0, 80*time.Millisecond)
	}
	draws <- next()
	return func() time.Duration {
		was := <-draws
		draws <- next()
		return was
	}
}

// partition does something to one worker's network, or to all of them, and ends it again: by
// healing, or by a cut.
func (r *round) partition(ctx context.Context, rng *rand.Rand, what string, f func(*proxy.Proxy)) error {
	return again(ctx, rng, 400*time.Millisecond, func() error {
		some := r.proxies[:]
		if rng.IntN(4) > 0 {
			n := rng.IntN(len(some))
			some = some[n : n+1]
		}
		for _, p := range some {
			f(p)
		}
		r.blows.note(what)
		wait := time.NewTimer(between(rng, 50*time.Millisecond, 2*ttl))
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
		cut := rng.IntN(2) == 0
		for _, p := range some {
			if cut {
				p.Cut()
			}
			p.Heal()
		}
		return nil
	})
}
