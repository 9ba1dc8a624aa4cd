//go:build linux

package main

import (
	"context"
	"math/rand/v2"

	"github.com/rowlockdb/rowlock/internal/attack/check"
	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

// failoverFaults let replicas take the primary's place, again and again in one round. Each commit
// that a failover undoes was acknowledged before its primary was killed, and after the promoted
// server had stopped to receive.
var failoverFaults = []*fault{
	{
		name: "failover-sync", what: "the primary killed and its synchronous standby promoted, again and again",
		on: []string{"postgres"}, alone: true, repeats: true,
		before: func(ctx context.Context, r *round) error {
			return r.lead(ctx, "-c", "synchronous_standby_names=*", "-c", "synchronous_commit=on")
		},
		strike: failovers(func(ctx context.Context, r *round, _ *rand.Rand) error {
			return r.succeed(ctx, r.chain.next, 0)
		}),
	},
	{
		name:  "failover-lossy",
		what:  "the primary killed and a replica promoted that lacks its last commits, again and again",
		alone: true, repeats: true,
		before: func(ctx context.Context, r *round) error { return r.lead(ctx) },
		strike: failovers(func(ctx context.Context, r *round, rng *rand.Rand) error {
			from, err := r.detach(ctx, rng, r.chain.next)
			if err != nil {
				return err
			}
			return r.succeed(ctx, r.chain.next, from)
		}),
	},
	{
		name:  "failover-twin",
		what:  "two replicas lack the same commits: one is promoted, and then the other, which knows nothing of it",
		alone: true, repeats: true,
		before: func(ctx context.Context, r *round) error { return r.lead(ctx) },
		strike: failovers(twins),
	},
	{
		name:  "failover-back",
		what:  "a replica that lacks commits is promoted, and then killed; the old primary comes back",
		alone: true, repeats: true,
		before: func(ctx context.Context, r *round) error { return r.lead(ctx) },
		strike: failovers(back),
	},
}

// failovers repeats one kind of it until ctx ends. What has begun comes to its end.
func failovers(one func(context.Context, *round, *rand.Rand) error) func(context.Context, *round, *rand.Rand) error {
	return func(ctx context.Context, r *round, rng *rand.Rand) error {
		for {
			if fight.Sleep(ctx, between(rng, ttl/8, ttl/2)); ctx.Err() != nil {
				return nil
			}
			if err := r.wholly(ctx, rng, one); err != nil {
				return err
			}
		}
	}
}

// wholly has a failover come to its end, and gives the new primary a replica.
func (r *round) wholly(ctx context.Context, rng *rand.Rand, one func(context.Context, *round, *rand.Rand) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startFor)
	defer cancel()
	if err := one(ctx, r, rng); err != nil {
		return err
	}
	return r.addReplica(ctx)
}

// twins promotes two that were the same, one after the other.
func twins(ctx context.Context, r *round, rng *rand.Rand) error {
	second, err := r.replica(ctx)
	if err != nil {
		return err
	}
	from, err := r.detach(ctx, rng, r.chain.next, second)
	if err != nil {
		return err
	}
	if err := r.succeed(ctx, r.chain.next, from); err != nil {
		return err
	}
	fight.Sleep(ctx, between(rng, ttl/8, ttl/2))
	return r.succeed(ctx, second, from)
}

// back has the old primary forget its successor.
func back(ctx context.Context, r *round, rng *rand.Rand) error {
	from, err := r.detach(ctx, rng, r.chain.next)
	if err != nil {
		return err
	}
	old := r.server
	if err := r.succeed(ctx, r.chain.next, from); err != nil {
		return err
	}
	from = fight.Now()
	fight.Sleep(ctx, between(rng, ttl/8, ttl/2))
	return r.succeed(ctx, old, from)
}

// detach has replicas receive no more, when they have all that was acknowledged until from, and
// lets the primary go on without them for a moment.
func (r *round) detach(ctx context.Context, rng *rand.Rand, replicas ...*server) (from int64, err error) {
	from = fight.Now()
	for _, s := range replicas {
		if err := r.server.replicas.receive(ctx, r.server, s); err != nil {
			return 0, err
		}
	}
	for _, s := range replicas {
		if err := s.replicas.stop(ctx, s); err != nil {
			return 0, err
		}
	}
	fight.Sleep(ctx, between(rng, ttl/8, ttl/3))
	return from, nil
}

// failover is one that was done. Lost says that it has undone what was acknowledged after from and
// before killed.
type failover struct {
	from, killed, ready int64
	lost                bool
}

// succeed kills the primary and has another take its place, with what it has. If from is not 0,
// what was acknowledged since then is undone.
func (r *round) succeed(ctx context.Context, s *server, from int64) error {
	r.blows.note("failover")
	r.server.kill()
	f := failover{from: from, killed: fight.Now(), lost: from > 0}
	for _, p := range r.proxies {
		p.Cut()
	}
	if err := s.replicas.promote(ctx, s); err != nil {
		return err
	}
	for _, p := range r.proxies {
		p.Retarget(s.address())
	}
	r.server = s
	f.ready = fight.Now()
	r.failovers = append(r.failovers, f)
	return nil
}

// undone are the times whose commits a failover may have undone.
func (r *round) undone() (list []check.Span) {
	for _, f := range r.failovers {
		if f.lost {
			list = append(list, check.Span{From: f.from, To: f.killed})
		}
	}
	return list
}
