//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

var namespaceFaults = []*fault{
	{
		name: "namespace", what: "each worker in a network of its own, which is cut one way or both, and where tc netem is allowed loses, delays, doubles and reorders packets",
		alone: true, able: noNamespace,
		before: func(_ context.Context, r *round) error { return r.separate() },
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return again(ctx, rng, 300*time.Millisecond, func() error { return r.disturb(ctx, rng) })
		},
	},
}

// noNamespace tries what a round needs.
func noNamespace() string {
	n := &network{name: fmt.Sprintf("rl%dx", os.Getpid()%100000), subnet: 250}
	defer n.remove()
	if err := n.make(); err != nil {
		return fmt.Sprintf("MAY NOT MAKE A NETWORK NAMESPACE (%v): run as root, with iproute2", err)
	}
	return ""
}

// network is a namespace with one link to ours: the ends are called outside and inside.
type network struct {
	name   string
	subnet int
}

func (n *network) outside() string        { return n.name + "o" }
func (n *network) inside() string         { return n.name + "i" }
func (n *network) address(end int) string { return fmt.Sprintf("10.213.%d.%d", n.subnet, end) }

func run(line ...string) error {
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(line, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (n *network) make() error {
	within := []string{"ip", "-n", n.name}
	for _, line := range [][]string{
		{"ip", "netns", "add", n.name},
		{"ip", "link", "add", n.outside(), "type", "veth", "peer", "name", n.inside(), "netns", n.name},
		{"ip", "address", "add", n.address(1) + "/24", "dev", n.outside()},
		{"ip", "link", "set", n.outside(), "up"},
		append(within, "address", "add", n.address(2)+"/24", "dev", n.inside()),
		append(within, "link", "set", n.inside(), "up"),
		append(within, "link", "set", "lo", "up"),
	} {
		if err := run(line...); err != nil {
			return err
		}
	}
	return nil
}

func (n *network) remove() { _ = run("ip", "netns", "delete", n.name) } // and the link with it

// emulate sets what happens to packets on their way to the server and from it.
func (n *network) emulate(how ...string) error {
	line := func(end string) []string {
		return append([]string{"tc", "qdisc", "replace", "dev", end, "root", "netem"}, how...)
	}
	if err := run(line(n.outside())...); err != nil {
		return err
	}
	return run(append([]string{"ip", "netns", "exec", n.name}, line(n.inside())...)...)
}

// lose has the kernel throw away what is sent to an address: requests inside, replies outside.
func (n *network) lose(up bool, verb string) error {
	if up {
		return run("ip", "-n", n.name, "route", verb, "blackhole", n.address(1)+"/32")
	}
	return run("ip", "route", verb, "blackhole", n.address(2)+"/32")
}

func (n *network) link(state string) error { return run("ip", "link", "set", n.outside(), state) }

// separate gives each worker a namespace. They reach the server without a proxy.
func (r *round) separate() error {
	for i := range r.workers {
		n := &network{name: fmt.Sprintf("rl%d%c", os.Getpid()%100000, 'a'+i), subnet: 100 + (os.Getpid()+i)%150}
		r.networks = append(r.networks, n)
		r.later(func(context.Context) error { n.remove(); return nil })
		if err := n.make(); err != nil {
			return err
		}
		r.team.Sources[i] = r.server.dsn(worker, n.address(1)+":"+r.server.port)
	}
	r.team.Enter = func(worker int) []string { return []string{"ip", "netns", "exec", r.networks[worker].name} }
	return nil
}

// disturb does something to the network of one worker for up to two TTLs, and undoes it.
func (r *round) disturb(ctx context.Context, rng *rand.Rand) error {
	n := r.networks[rng.IntN(len(r.networks))]
	up, most := rng.IntN(2) == 0, 4
	if noNetem() != "" {
		most = 2
	}
	var what string
	var do, undo error
	hold := func() { fight.Sleep(ctx, between(rng, ttl/3, 2*ttl)) }
	switch rng.IntN(most) {
	case 0:
		what, do = "link down", n.link("down")
		hold()
		undo = n.link("up")
	case 1:
		what, do = "one way cut", n.lose(up, "add")
		hold()
		undo = n.lose(up, "delete")
	default:
		what, do = "bad network", n.emulate("delay", "40ms", "40ms", "loss", "10%", "duplicate", "2%", "reorder", "10%")
		hold()
		undo = n.emulate("delay", "0ms")
	}
	r.blows.note(what)
	return errors.Join(do, undo)
}

// noNetem says why packets cannot be delayed and lost at random; the proxies do the like.
var noNetem = sync.OnceValue(func() string {
	n := &network{name: fmt.Sprintf("rl%dy", os.Getpid()%100000), subnet: 251}
	defer n.remove()
	err := n.make()
	if err == nil {
		err = n.emulate("delay", "1ms")
	}
	if err == nil {
		return ""
	}
	fmt.Printf("chaos: MAY NOT USE tc netem (%v): NETWORKS ARE ONLY CUT, NOT SLOWED\n", err)
	return err.Error()
})
