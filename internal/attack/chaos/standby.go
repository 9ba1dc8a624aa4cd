//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"golang.org/x/sys/unix"

	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

var standbyFaults = []*fault{
	{
		name: "promote-sync", what: "the primary killed, and its synchronous standby promoted", on: []string{"postgres"}, alone: true,
		before: func(ctx context.Context, r *round) error {
			return r.pair(ctx, "-c", "synchronous_standby_names=*", "-c", "synchronous_commit=on")
		},
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			fight.Sleep(ctx, between(rng, ttl/3, ttl))
			return r.promote(ctx)
		},
	},
	{
		name: "promote-lossy", what: "the primary killed, and a standby promoted that lacks the last commits", on: []string{"postgres"},
		alone: true, control: true,
		before: func(ctx context.Context, r *round) error { return r.pair(ctx) },
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			r.standby.signal(unix.SIGSTOP)
			fight.Sleep(ctx, between(rng, ttl/3, ttl))
			return r.promote(ctx)
		},
	},
}

// pair gives the round a primary with these settings and a standby that follows it. They are of the
// round alone.
func (r *round) pair(ctx context.Context, settings ...string) (err error) {
	folder := fmt.Sprintf("%s-pair-%d", r.server.folder, r.number)
	primary, err := newServer(ctx, &postgres, folder)
	if err != nil {
		return err
	}
	r.later(func(context.Context) error { return primary.end() })
	copied := postgres
	copied.setup = nil
	copied.prepare = func(s *server) error {
		return s.run(program("pg_basebackup"), "--pgdata="+s.folder+"/data", "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
			"--dbname="+primary.dsn(primary.root, primary.address()))
	}
	if r.standby, err = newServer(ctx, &copied, folder+"-standby"); err != nil {
		return err
	}
	r.later(func(context.Context) error { return r.standby.end() })
	primary.settings = settings
	if err := primary.restart(ctx); err != nil {
		return err
	}
	return r.use(ctx, primary)
}

// use has the round take place on another server, which is empty, or is a copy of the one before.
func (r *round) use(ctx context.Context, s *server) error {
	r.server = s
	for _, p := range r.proxies {
		p.Retarget(s.address())
	}
	if s == r.standby {
		return nil
	}
	if err := r.await(ctx, `SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'`, "1"); err != nil {
		return err
	}
	if err := r.database.Create(ctx, s.db); err != nil {
		return err
	}
	return r.database.Counters(ctx, s.db, planKeys())
}

func (r *round) await(ctx context.Context, query, answer string) error {
	ctx, cancel := context.WithTimeout(ctx, startFor)
	defer cancel()
	for r.server.ask(ctx, query) != answer {
		if fight.Sleep(ctx, look); ctx.Err() != nil {
			return fmt.Errorf("%s has not become %s in %s", query, answer, startFor)
		}
	}
	return nil
}

// promote kills the primary and has the standby take its place, with what it has on its disk.
func (r *round) promote(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	r.blows.note("promotion")
	r.server.kill()
	for _, p := range r.proxies {
		p.Cut()
	}
	if err := r.standby.restart(ctx); err != nil {
		return err
	}
	r.server = r.standby
	// A statement that waits for the end of recovery can be canceled by what is replayed meanwhile
	if err := r.standby.exec(ctx, `SELECT pg_promote(false)`); err != nil {
		return err
	}
	if err := r.await(ctx, `SELECT pg_is_in_recovery()::text`, "false"); err != nil {
		return err
	}
	return r.use(ctx, r.standby)
}
