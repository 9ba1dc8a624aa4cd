//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/attack/fight"
	"github.com/rowlockdb/rowlock/internal/attack/history"
	"github.com/rowlockdb/rowlock/internal/attack/proxy"
)

// round is one plan on one server: workers begin in peace, have a fault, and must go on when it is
// over.
type round struct {
	settings
	number int
	fault  *fault
	server *server
	seed   uint64

	folder   string
	plan     fight.Plan
	database fight.Database
	proxies  []*proxy.Proxy
	fates    *fates
	bouncer  *server // of the round alone, as the next
	chain    *chain
	cluster  *cluster
	networks []*network
	team     *fight.Team
	undo     []func(context.Context) error

	start, hurt, healed int64
	probed              time.Duration
	blows               blows
	failovers           []failover
	events              []history.Event
}

// ttl is the lease of a round's locks: some fit into a round, so that there are losses and
// takeovers.
const ttl = 2 * time.Second

// worker is the user that workers are.
const worker = "app"

// look is how often something is looked for.
const look = 20 * time.Millisecond

// calmAtFirst is before the fault, and calmAtLast after it.
const (
	calmAtFirst = 500 * time.Millisecond
	calmAtLast  = 3 * time.Second
)

func (r *round) name() string {
	return fmt.Sprintf("%s %s seed %d", r.server.name, r.fault.name, r.seed)
}

// run is the whole of a round.
func (r *round) run(ctx context.Context) (f *found, err error) {
	if r.folder, err = os.MkdirTemp("", "rowlock-chaos-records-"); err != nil {
		return nil, err
	}
	defer func() {
		for i := len(r.undo) - 1; i >= 0; i-- {
			err = errors.Join(err, r.undo[i](context.WithoutCancel(ctx)))
		}
	}()
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if err := r.fight(ctx); err != nil {
		return nil, fmt.Errorf("%w (records: %s)", err, r.folder)
	}
	if f, err = r.judge(ctx); err != nil {
		return nil, err
	}
	r.say(f)
	if len(f.report.Violations) > 0 || r.keep {
		fmt.Println("  records:", r.folder)
		return f, nil
	}
	return f, os.RemoveAll(r.folder)
}

func (r *round) later(f func(context.Context) error) { r.undo = append(r.undo, f) }

// prefix is of this round alone. Rounds on several databases share a cluster, which belongs to the
// tables that it has met first.
func (r *round) prefix() string {
	return fmt.Sprintf("c%d_%s%d_", os.Getpid()%1000, r.server.name[:2], r.number)
}

// prepare makes tables and proxies, and lets the fault make what it needs.
func (r *round) prepare(ctx context.Context) (err error) {
	r.plan = newPlan(r.seed, r.round)
	r.database = fight.Database{
		Name: r.server.name, DSN: r.server.dsn(worker, r.server.address()), Prefix: r.prefix(),
	}
	if err := r.database.Create(ctx, r.server.db); err != nil {
		return err
	}
	own := r.server
	r.later(func(ctx context.Context) error { return r.database.Drop(ctx, own.db) })
	if err := r.database.Counters(ctx, r.server.db, planKeys()); err != nil {
		return err
	}
	r.fates = newFates(r)
	r.team = fight.NewTeam(r.folder, fight.Job{Database: r.database, Plan: r.plan}, r.workers)
	for range r.workers {
		p, err := proxy.Listen(r.server.address(), r.server.protocol(2*ttl), r.fates.decide)
		if err != nil {
			return err
		}
		r.later(func(context.Context) error { return p.Close() })
		r.proxies = append(r.proxies, p)
		r.team.Sources = append(r.team.Sources, r.server.dsn(worker, p.Address()))
	}
	if r.fault.before != nil {
		r.later(func(ctx context.Context) error { return own.realTime(ctx) })
		return r.fault.before(ctx, r)
	}
	return nil
}

// fight starts the workers, has the fault strike, and reads what they were told.
func (r *round) fight(ctx context.Context) (err error) {
	defer r.team.Kill()
	if err := r.team.Start(); err != nil {
		return err
	}
	if r.start, err = r.team.Begin(ctx, &r.plan); err != nil {
		return err
	}
	striking := make(chan error, 1)
	go func() { striking <- r.strike(ctx) }()
	err = r.follow(ctx)
	return errors.Join(<-striking, err)
}

// strike lasts from the calm before to the calm after.
func (r *round) strike(ctx context.Context) error {
	fight.Sleep(ctx, time.Duration(r.start-fight.Now())+calmAtFirst)
	r.hurt = fight.Now()
	until, cancel := context.WithDeadline(ctx, time.Now().Add(r.round-calmAtFirst-calmAtLast))
	defer cancel()
	err := r.fault.strike(until, r, r.plan.Stream("strike"))
	r.fates.off()
	for _, p := range r.proxies {
		p.Heal()
	}
	if r.fault.heal != nil {
		err = errors.Join(err, r.fault.heal(context.WithoutCancel(ctx), r))
	}
	r.healed = fight.Now()
	if err == nil && r.bouncer == nil {
		r.probed, err = r.probe(ctx)
	}
	return err
}

// probe is how long a client of its own takes to open and lock when the fault is over: what this
// machine can do now.
func (r *round) probe(ctx context.Context) (took time.Duration, err error) {
	began := time.Now()
	c, err := rowlock.OpenContext(ctx, r.server.db, r.database.Dialect(), &rowlock.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	l, err := c.Lock(ctx, "probe")
	if err != nil {
		return 0, err
	}
	took = time.Since(began)
	return took, l.Unlock(ctx)
}

const (
	// readEvery is how often the records are read.
	readEvery = 500 * time.Millisecond
	// overdue is how much longer than the plan the workers may take to close.
	overdue = 90 * time.Second
)

// follow reads the records as they grow, and returns when all workers have ended.
func (r *round) follow(ctx context.Context) error {
	return r.team.Follow(ctx, readEvery, overdue, func(more []history.Event) {
		r.events = append(r.events, more...)
	})
}
