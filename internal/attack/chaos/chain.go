//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

// replicas are what differs between the databases' replication.
type replicas interface {
	// leader is an engine whose servers can have replicas. Number is the server's own.
	leader(e engine, number int) engine
	// follow makes a snapshot of primary the data of a server that is to follow it, and join has it
	// do so once it runs.
	follow(s, primary *server) error
	join(ctx context.Context, primary, s *server) error
	// receive returns when s has all that primary had committed when it was called.
	receive(ctx context.Context, primary, s *server) error
	// stop has s receive no more, and promote has it take writes.
	stop(ctx context.Context, s *server) error
	promote(ctx context.Context, s *server) error
}

// chain are servers of a round alone, of which one after the other is its primary: round.server.
// Their data need not outlive the machine, only the server's processes.
type chain struct {
	base     engine
	folder   string
	settings []string
	next     *server // the primary's replica
	all      []*server
	made     int
}

// lead gives the round a primary with these settings, and a replica.
func (r *round) lead(ctx context.Context, settings ...string) error {
	r.chain = &chain{base: *r.server.engine, folder: fmt.Sprintf("%s-chain-%d", r.server.folder, r.number)}
	r.later(func(context.Context) error { return r.chain.end() })
	e := r.chain.base.replicas.leader(r.chain.base, r.chain.number())
	primary, err := r.chain.add(ctx, e)
	if err != nil {
		return err
	}
	// Not from the first: its users cannot be made while commits wait for a replica
	primary.settings, r.chain.settings = settings, settings
	if err := primary.restart(ctx); err != nil {
		return err
	}
	r.server = primary
	for _, p := range r.proxies {
		p.Retarget(primary.address())
	}
	if r.chain.next, err = r.replica(ctx); err != nil {
		return err
	}
	if err := r.database.Create(ctx, primary.db); err != nil {
		return err
	}
	return r.database.Counters(ctx, primary.db, planKeys())
}

// replica makes one of the primary.
func (r *round) replica(ctx context.Context) (*server, error) {
	e := r.chain.base.replicas.leader(r.chain.base, r.chain.number())
	primary := r.server
	e.setup = nil
	e.prepare = func(s *server) error {
		if err := s.snapshot(primary); err != nil {
			return err
		}
		return e.replicas.follow(s, primary)
	}
	s, err := r.chain.add(ctx, e)
	if err != nil {
		return nil, err
	}
	return s, e.replicas.join(ctx, primary, s)
}

// addReplica gives the new primary a replica. The servers before it are of no more use.
func (r *round) addReplica(ctx context.Context) (err error) {
	for _, s := range r.chain.all {
		if s != r.server {
			err = errors.Join(err, s.end())
		}
	}
	r.chain.all = []*server{r.server}
	if err != nil {
		return err
	}
	r.chain.next, err = r.replica(ctx)
	return err
}

// number names a server among those of the chain.
func (c *chain) number() int {
	c.made++
	return c.made
}

func (c *chain) add(ctx context.Context, e engine) (*server, error) {
	e.urgent = true
	serve := e.serve
	e.serve = func(s *server) []string { return append(serve(s), c.settings...) }
	s, err := newServer(ctx, &e, fmt.Sprintf("%s-%d", c.folder, c.made))
	if err == nil {
		c.all = append(c.all, s)
	}
	return s, err
}

func (c *chain) end() (err error) {
	for _, s := range c.all {
		err = errors.Join(err, s.end())
	}
	return err
}

// snapshot copies the files of a server that stands still for that moment, as a snapshot of its
// disk would: the copy recovers as after a crash. On a busy machine a backup of a running server
// takes seconds.
func (s *server) snapshot(of *server) error {
	defer of.signal(unix.SIGCONT)
	// The first process first, because it starts the others
	_ = unix.Kill(of.cmd.Process.Pid, unix.SIGSTOP)
	fight.Stopped(of.cmd.Process.Pid)
	of.signal(unix.SIGSTOP)
	for _, pid := range fight.Children(of.cmd.Process.Pid) {
		fight.Stopped(pid)
	}
	out, err := exec.Command("cp", "-a", of.outside(of.folder+"/data"), s.outside(s.folder+"/data")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// await asks until the answer is right.
func (s *server) await(ctx context.Context, query, answer string) error {
	ctx, cancel := context.WithTimeout(ctx, startFor)
	defer cancel()
	for s.ask(ctx, query) != answer {
		if fight.Sleep(ctx, 5*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("%s has not become %s in %s: %s", query, answer, startFor, s.lastLog())
		}
	}
	return nil
}
