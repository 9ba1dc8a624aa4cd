//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"golang.org/x/sys/unix"

	"github.com/rowlockdb/rowlock/dialect"
	innodialect "github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/internal/attack/fight"
	"github.com/rowlockdb/rowlock/internal/attack/proxy"
	"github.com/rowlockdb/rowlock/paxosbridge/groupreplication"
	"github.com/rowlockdb/rowlock/schema"
)

// bridgeFaults have workers lock keys that a bridge moves out and back meanwhile. The cluster is
// that of scripts/with-servers.
var bridgeFaults = []*fault{
	{
		name:  "bridge-etcd",
		what:  "keys moved to etcd and back, while workers are cut off from it or the database, and members stopped",
		alone: true, able: without("ROWLOCK_TEST_ETCD", "etcd"),
		before: func(ctx context.Context, r *round) error { return r.bridgeTo(ctx, etcd()) },
		strike: severed,
	},
	{
		name: "bridge-group", what: "the same with a group of MySQL servers in the place of etcd",
		alone: true, able: without("ROWLOCK_TEST_GROUP", "group"),
		before: func(ctx context.Context, r *round) error { return r.bridgeTo(ctx, group()) },
		strike: severed,
	},
}

// without says why there is no such cluster.
func without(variable, server string) func() string {
	return func() string {
		if os.Getenv(variable) != "" {
			return ""
		}
		return fmt.Sprintf("%s IS NOT SET: run scripts/with-servers %s -- …", variable, server)
	}
}

// cluster is what a bridge moves keys to. Each worker has a proxy to each member.
type cluster struct {
	members []string // addresses
	adapt   func(j *fight.Job, addresses []string)
	ready   func(ctx context.Context, r *round) error
	pids    func() []int
	proxies [][]*proxy.Proxy // by worker
}

func etcd() *cluster {
	return &cluster{
		members: strings.Split(os.Getenv("ROWLOCK_TEST_ETCD"), ","),
		adapt:   func(j *fight.Job, addresses []string) { j.Etcd = strings.Join(addresses, ",") },
		pids:    func() []int { return numbers(os.Getenv("ROWLOCK_TEST_ETCD_PID")) },
	}
}

func numbers(text string) (list []int) {
	for _, word := range words(text) {
		if n, err := strconv.Atoi(word); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// group has a process that starts its members again; they are its children.
func group() *cluster {
	sources := strings.Fields(os.Getenv("ROWLOCK_TEST_GROUP"))
	c := &cluster{
		adapt: func(j *fight.Job, addresses []string) { j.Group = through(sources, addresses) },
		ready: func(ctx context.Context, r *round) error { return migrate(ctx, sources, r.database.Prefix) },
		pids:  groupMembers,
	}
	for _, source := range sources {
		if cfg, err := driver.ParseDSN(source); err == nil {
			c.members = append(c.members, cfg.Addr)
		}
	}
	return c
}

func groupMembers() (list []int) {
	for _, keeper := range numbers(os.Getenv("ROWLOCK_TEST_GROUP_PID")) {
		for _, pid := range fight.Children(keeper) {
			if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.HasPrefix(string(text), "mysqld") {
				list = append(list, pid)
			}
		}
	}
	return list
}

// through are the same data sources at other addresses.
func through(sources, addresses []string) (list []string) {
	for n, source := range sources {
		cfg, err := driver.ParseDSN(source)
		if err != nil {
			continue
		}
		cfg.Addr = addresses[n]
		list = append(list, cfg.FormatDSN())
	}
	return list
}

func migrate(ctx context.Context, sources []string, prefix string) error {
	members, err := fight.Members(sources)
	for _, db := range members {
		defer db.Close()
	}
	if err != nil {
		return err
	}
	primary, err := groupreplication.Primary(ctx, members)
	if err != nil {
		return err
	}
	return schema.Migrate(ctx, primary, innodialect.New(dialect.Prefix(prefix)))
}

// bridgeCrews are those of a worker whose client is a bridge, which keeps no queue.
func bridgeCrews() []fight.Crew {
	moving := fight.Keys(fight.MovingPrefix, 4)
	return []fight.Crew{
		{Name: "moving", Goroutines: 10, Keys: moving, Acts: []fight.Weight{
			{Act: "try", Of: 2}, {Act: "lock", Of: 4}, {Act: "fenced", Of: 4}, {Act: "short", Of: 1}, {Act: "hasty", Of: 1},
		}},
		{Name: "movers", Goroutines: 1, Keys: moving, Acts: []fight.Weight{{Act: "move", Of: 1}}},
		{Name: "keep", Goroutines: 2, Keys: moving, Acts: []fight.Weight{{Act: "keep", Of: 1}}},
		{Name: "locks", Goroutines: 4, Keys: fight.Keys("locks/", 2), Acts: []fight.Weight{
			{Act: "fenced", Of: 2}, {Act: "leave", Of: 1},
		}},
		{Name: "together", Goroutines: 2, Keys: fight.Keys("together/", 4), Acts: []fight.Weight{{Act: "all", Of: 1}}},
	}
}

// bridgeTo has the workers be clients of a bridge.
func (r *round) bridgeTo(ctx context.Context, c *cluster) error {
	r.cluster = c
	r.plan.Phases[0].Crews = bridgeCrews()
	if err := r.database.Counters(ctx, r.server.db, fight.Keys(fight.MovingPrefix, 4)); err != nil {
		return err
	}
	if c.ready != nil {
		if err := c.ready(ctx, r); err != nil {
			return err
		}
	}
	if err := r.reach(c); err != nil {
		return err
	}
	sources := r.team.Sources
	r.team = fight.NewTeam(r.folder, fight.Job{Database: r.database, Plan: r.plan}, r.workers)
	r.team.Sources = sources
	r.team.Adapt = func(j *fight.Job) {
		var addresses []string
		for _, p := range c.proxies[j.Worker] {
			addresses = append(addresses, p.Address())
		}
		c.adapt(j, addresses)
	}
	return nil
}

// reach gives each worker a proxy to each member.
func (r *round) reach(c *cluster) error {
	for range r.workers {
		var own []*proxy.Proxy
		for _, address := range c.members {
			address = strings.TrimPrefix(address, "http://")
			if _, _, err := net.SplitHostPort(address); err != nil {
				return err
			}
			p, err := proxy.Listen(address, proxy.Raw, nil)
			if err != nil {
				return err
			}
			r.later(func(context.Context) error { return p.Close() })
			own = append(own, p)
		}
		c.proxies = append(c.proxies, own)
	}
	return nil
}

// severed cuts one of the ways, or stops members, one after the other.
func severed(ctx context.Context, r *round, rng *rand.Rand) error {
	return again(ctx, rng, 300*time.Millisecond, func() error {
		if rng.IntN(3) == 0 {
			r.stopMembers(ctx, rng)
			return nil
		}
		some := r.ways(rng)
		for _, p := range some {
			switch rng.IntN(3) {
			case 0:
				p.Refuse()
			default:
				p.Stall(proxy.Direction(rng.IntN(2)))
			}
		}
		fight.Sleep(ctx, between(rng, 50*time.Millisecond, 2*ttl))
		for _, p := range some {
			p.Heal()
		}
		return nil
	})
}

// ways are those of one worker, or of all, to the cluster, to some members or to the database.
func (r *round) ways(rng *rand.Rand) (some []*proxy.Proxy) {
	one := rng.IntN(r.workers + 1)
	how := rng.IntN(3)
	r.blows.note([]string{"cut from the cluster", "cut from a member", "cut from the database"}[how])
	member := rng.IntN(len(r.cluster.members))
	for n := range r.workers {
		switch {
		case one != n && one < r.workers:
		case how == 0:
			some = append(some, r.cluster.proxies[n]...)
		case how == 1:
			some = append(some, r.cluster.proxies[n][member])
		default:
			some = append(some, r.proxies[n])
		}
	}
	return some
}

// stopMembers has one or two of three stand still, for less time than a group needs to expel them.
func (r *round) stopMembers(ctx context.Context, rng *rand.Rand) {
	all := r.cluster.pids()
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	some := all[:min(1+rng.IntN(2), len(all))]
	if len(some) == 0 {
		return
	}
	for _, pid := range some {
		_ = unix.Kill(pid, unix.SIGSTOP)
	}
	fight.Sleep(ctx, between(rng, ttl/4, 2*ttl))
	for _, pid := range some {
		_ = unix.Kill(pid, unix.SIGCONT)
	}
	r.blows.note(fmt.Sprintf("%d members stopped", len(some)))
}
