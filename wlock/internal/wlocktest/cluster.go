package wlocktest

import (
	"crypto/md5"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

// Registry is the address of the registry where connections are made in memory.
const Registry = "registry:22020"

// Options say how large a cluster is.
type Options struct {
	Nodes, Groups int
	// TCP has it listen on loopback addresses. Otherwise Dial alone reaches it.
	TCP bool
	// OneIP has all nodes on one address, with ports of their own.
	OneIP bool
}

// Cluster is a registry and its lock servers.
type Cluster struct {
	// Address is the registry's.
	Address string

	mu      sync.Mutex
	nodes   []*Node
	groups  []*group
	tenants map[string]bool
	shift   time.Duration
	version int64
	hidden  map[int32]bool
	session int64 // of what servers send by themselves

	network
	stop chan struct{}
}

// New starts a cluster that serves the keys with these names.
func New(o Options, names ...string) *Cluster {
	c := &Cluster{
		tenants: make(map[string]bool), hidden: make(map[int32]bool), version: 1700000000000,
		stop: make(chan struct{}), network: network{open: make(map[*conn]bool), at: make(map[string]endpoint)},
	}
	for _, name := range names {
		c.tenants[Tenant(name)] = true
	}
	c.Address = c.listen(o.TCP, "127.0.0.1", Registry, &registry{c})
	for seq := 1; seq <= o.Nodes; seq++ {
		n := &Node{c: c, seq: seq, ip: fmt.Sprintf("127.0.0.%d", seq)}
		if o.OneIP {
			n.ip = "127.0.0.1"
		}
		n.address = c.listen(o.TCP, n.ip, fmt.Sprint(n.ip, ":", 40000+seq), n)
		c.nodes = append(c.nodes, n)
	}
	for id := range o.Groups {
		c.groups = append(c.groups, &group{
			id: int32(id), counter: 1000, master: id%o.Nodes + 1, records: records{}, queues: map[string][]*waiter{},
		})
	}
	c.work.Go(c.tick)
	return c
}

// Tenant is the hash of a registry's key.
func Tenant(name string) string { return strings.ToUpper(fmt.Sprintf("%x", md5.Sum([]byte(name)))) }

// Close ends it all, and returns when nothing runs any more.
func (c *Cluster) Close() {
	close(c.stop)
	c.mu.Lock()
	for _, n := range c.nodes {
		n.wake()
	}
	c.mu.Unlock()
	c.network.close()
}

func (c *Cluster) now() time.Time { return time.Now().Add(c.shift) }

// Advance has the servers' clocks go on, and no client's.
func (c *Cluster) Advance(d time.Duration) { c.do(func() { c.shift += d }) }

func (c *Cluster) do(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// Node returns the one with this number, from 1.
func (c *Cluster) Node(seq int) *Node { return c.nodes[seq-1] }

// Master returns the master of a key's group, or nil.
func (c *Cluster) Master(id int32) (n *Node) {
	c.do(func() {
		if m := c.groups[id].master; m > 0 {
			n = c.nodes[m-1]
		}
	})
	return n
}

// Elect gives the groups of masters that are dead, paused or behind, and those without one, to the
// next node, whose queues are empty. The registry then tells of a new version.
func (c *Cluster) Elect() {
	c.do(func() {
		for _, g := range c.groups {
			for range c.nodes {
				if g.master > 0 && !c.nodes[g.master-1].idle() {
					break
				}
				g.master = g.master%len(c.nodes) + 1
				clear(g.queues)
			}
		}
		c.version++
	})
}

// Depose leaves a group without a master: each node then serves it by itself.
func (c *Cluster) Depose(id int32) {
	c.do(func() { c.groups[id].master = 0; clear(c.groups[id].queues) })
}

// Hide has the registry not list a group, as while it has no master.
func (c *Cluster) Hide(ids ...int32) {
	c.do(func() {
		clear(c.hidden)
		for _, id := range ids {
			c.hidden[id] = true
		}
		c.version++
	})
}

// Expire ends the locks of a key, as if their time had passed, and leaves them where they are.
func (c *Cluster) Expire(key string) {
	c.do(func() {
		for _, g := range c.groups {
			for _, l := range g.records[key].all() {
				l.expiry = c.now()
			}
		}
	})
}

// SetToken has the next token of all groups be token+1.
func (c *Cluster) SetToken(token int64) {
	c.do(func() {
		for _, g := range c.groups {
			g.counter = token
		}
	})
}

// Number has the next frame that a server sends by itself have this number.
func (c *Cluster) Number(session int64) { c.do(func() { c.session = session - 1 }) }

// Held returns the owner of a mutex and its token, by the log.
func (c *Cluster) Held(key string) (owner frame.Owner, token int64, held bool) {
	c.do(func() {
		for _, g := range c.groups {
			if r := g.records[key]; r != nil && r.writer != nil && r.writer.lives(c.now()) {
				owner, token, held = r.writer.owner, r.writer.token, true
			}
		}
	})
	return owner, token, held
}

// Waiting is how many wait for a key, or watch it.
func (c *Cluster) Waiting(key string) (n int) {
	c.do(func() {
		for _, g := range c.groups {
			if g.master > 0 {
				n += len(c.nodes[g.master-1].waiting(g, key))
			}
		}
	})
	return n
}

func (c *Cluster) tick() {
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-every.C:
			c.do(c.expireAll)
		}
	}
}

// expireAll is what masters do by themselves: but read-write locks end only when they are touched.
func (c *Cluster) expireAll() {
	for _, g := range c.groups {
		if g.master == 0 || c.nodes[g.master-1].idle() {
			continue
		}
		n := c.nodes[g.master-1]
		for key, r := range g.records {
			if len(r.readers) == 0 && !r.shared && n.expired(g, key) {
				n.promote(g, key)
			}
		}
	}
}
