package wlock

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

// beat is the time between heartbeats at the registry, as the Java client has it.
const beat = 5 * time.Second

// pause is the shortest between two tries, longest the longest.
const (
	pause   = 5 * time.Millisecond
	longest = 250 * time.Millisecond
)

// follow keeps a connection to the registry, and learns from it. ready gets the first error that no
// further try would cure, or nil once the cluster is known.
func (c *Client) follow(ready chan<- error) {
	wait, told := pause, false
	tell := func(err error) {
		if !told {
			told = true
			ready <- err
		}
	}
	for i := 0; c.ctx.Err() == nil; i++ {
		address := c.cfg.Registry[i%len(c.cfg.Registry)]
		err := c.listenTo(address, func() { wait = pause; tell(nil) })
		if errors.Is(err, ErrCluster) {
			tell(err)
		}
		c.know(func() { c.trouble = fmt.Errorf("registry %s: %w", address, err) })
		if !sleep(c.ctx, wait) {
			return
		}
		wait = min(2*wait, time.Second)
	}
}

// listenTo reads what one registry says until the connection ends.
func (c *Client) listenTo(address string, known func()) error {
	to, err := c.dial(c.ctx, address)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(c.ctx, func() { _ = to.Close() })
	quit := make(chan struct{})
	var asks sync.WaitGroup
	asks.Go(func() { c.askRegistry(to, quit) })
	defer func() {
		stop()
		close(quit)
		_ = to.Close()
		asks.Wait()
	}()
	in := bufio.NewReader(to)
	var body []byte
	for {
		if body, err = frame.Read(in, body, frame.MaxBody); err != nil {
			return err
		}
		var m frame.Control
		if err := frame.Decode(body, &m); err != nil {
			return err
		}
		switch whole, err := c.learn(&m); {
		case err != nil:
			return err
		case whole:
			known()
		}
	}
}

// askRegistry asks for the topology, then for changes, and shows signs of life between.
func (c *Client) askRegistry(to net.Conn, quit <-chan struct{}) {
	ticks := time.NewTicker(min(beat, c.cfg.Poll))
	defer ticks.Stop()
	ask := frame.Control{Op: frame.Config, Kind: frame.All}
	asked := time.Now()
	for session := int64(1); ; session++ {
		ask.Session = session
		if ask.Op == frame.Config {
			ask.Payload, _ = json.Marshal(map[string]any{
				"autoRenew": false, "hashCode": 0, "key": c.tenant, "version": c.version(),
			})
		}
		if _, err := to.Write(frame.Append(nil, &ask)); err != nil {
			_ = to.Close()
			return
		}
		select {
		case <-quit:
			return
		case <-ticks.C:
		}
		ask = frame.Control{Op: frame.Beat, Kind: frame.Sent}
		if complete := c.version() > 0; !complete || time.Since(asked) >= c.cfg.Poll {
			asked = time.Now()
			if ask = (frame.Control{Op: frame.Config, Kind: frame.Validate}); !complete {
				ask.Kind = frame.All
			}
		}
	}
}

// learn takes what the registry says. whole reports whether the cluster is known.
func (c *Client) learn(m *frame.Control) (whole bool, err error) {
	switch {
	case m.Op == frame.Config && (m.Kind == frame.Refused || m.Kind == frame.Unknown):
		return false, fmt.Errorf("%w %q: %.80q", ErrCluster, c.cfg.Cluster, m.Payload)
	case m.Op != frame.Config && m.Op != frame.Push || len(m.Payload) == 0 || m.Kind == frame.Ack:
		return false, nil
	}
	t, err := parse(m.Payload)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.take(t); err != nil {
		c.trouble = err
		if c.groups == nil {
			return false, err // asked again on the next connection
		}
	}
	return c.groups != nil, nil
}

// take pins the groups when it first sees all of them. Later it learns of nodes and masters, and
// never of another set of groups: the same key would be free in another.
func (c *Client) take(t *topology) error {
	if c.groups == nil {
		ids, err := t.order(c.cfg.Groups)
		if err != nil {
			return err
		}
		c.groups = ids
	} else if t.Version <= c.topologyVersion {
		return nil
	}
	c.topologyVersion = t.Version
	for _, n := range t.Nodes {
		if l := c.links[n.Seq]; l == nil || l.address != n.address() {
			// calls under way keep the one before
			c.links[n.Seq] = &link{node: n, address: n.address(), one: make(chan struct{}, 1)}
		}
	}
	for _, g := range t.Groups {
		if c.links[g.Master] != nil {
			c.masters[g.ID] = g.Master
		}
	}
	c.wake()
	return nil
}

func (c *Client) know(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *Client) version() (v int64) {
	c.know(func() { v = c.topologyVersion })
	return v
}

// dial is bounded by the ctx that Config.Dial gets.
func (c *Client) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	to, err := c.cfg.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: wlock: %w", lease.ErrBusy, err)
	}
	return to, nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	until, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-until.Done()
	return ctx.Err() == nil
}
