package wlocktest

import (
	"net"
	"strconv"
	"time"

	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

// Fault is what becomes of one request.
type Fault int

// The faults. A request that is held is carried out when Let is called, and its answer is sent.
const (
	None       Fault = iota
	LoseBefore       // it never arrives
	LoseAfter        // it is carried out, and not answered
	CutBefore        // the connection ends instead
	CutAfter         // it is carried out, and the connection ends
	Fail             // it is answered ERROR, and not carried out
	FailAfter        // it is carried out, and answered ERROR
	Hold
	HoldAnswer // it is carried out, and answered when Let is called
)

// Node is a lock server.
type Node struct {
	c       *Cluster
	seq     int
	ip      string
	address string

	down    bool
	resumed chan struct{} // while it is paused
	behind  map[int32]records
	fault   func(q *frame.Request) Fault
	mangle  func(answer []byte) []byte
	once    bool
	held    []func()
}

// Address is what clients dial.
func (n *Node) Address() string { return n.address }

func (n *Node) port() int {
	_, port, _ := net.SplitHostPort(n.address)
	i, _ := strconv.Atoi(port)
	return i
}

// Fault has f decide on each request. f must not call the cluster.
func (n *Node) Fault(f func(q *frame.Request) Fault) { n.c.do(func() { n.fault = f }) }

// Mangle has f change each frame that is sent to clients, or lose it.
func (n *Node) Mangle(f func(answer []byte) []byte) {
	n.c.do(func() { n.mangle, n.once = f, false })
}

// MangleOnce has f change the next frame.
func (n *Node) MangleOnce(f func(answer []byte) []byte) {
	n.c.do(func() { n.mangle, n.once = f, true })
}

// Kill ends the node. Its groups keep it as their master until Elect.
func (n *Node) Kill() {
	n.c.do(func() { n.down = true })
	n.Cut()
}

// Cut ends its connections, and what waits on them.
func (n *Node) Cut() {
	n.c.network.cut(func(k *conn) bool { return k.at == endpoint(n) }, false)
}

// Connections is how many there are.
func (n *Node) Connections() (count int) {
	n.c.guard.Lock()
	defer n.c.guard.Unlock()
	for k := range n.c.open {
		if k.at == endpoint(n) {
			count++
		}
	}
	return count
}

// Start starts it again.
func (n *Node) Start() { n.c.do(func() { n.down = false }) }

// Pause stops it: requests wait in its connections. It keeps a copy of what it knows.
func (n *Node) Pause() {
	n.c.do(func() {
		n.resumed = make(chan struct{})
		n.behind = make(map[int32]records)
		for _, g := range n.c.groups {
			n.behind[g.id] = g.records.clone()
		}
	})
}

// Resume has it go on, by its copy, and by itself whether it is a master or not.
func (n *Node) Resume() { n.c.do(n.wake) }

func (n *Node) wake() {
	if n.resumed != nil {
		close(n.resumed)
		n.resumed = nil
	}
}

// CatchUp has it know all that was decided.
func (n *Node) CatchUp() { n.c.do(func() { n.behind = nil }) }

// Let carries out the requests that were held, in their order.
func (n *Node) Let() {
	n.c.do(func() {
		held := n.held
		n.held = nil
		for _, f := range held {
			f()
		}
	})
}

// Reboot announces that the node is about to stop.
func (n *Node) Reboot() {
	n.c.guard.Lock()
	defer n.c.guard.Unlock()
	for k := range n.c.open {
		if k.at == endpoint(n) {
			k.send(frame.Append(nil, &frame.Request{Type: frame.Reboot}))
		}
	}
}

func (n *Node) takes() (takes bool) {
	n.c.do(func() { takes = !n.down })
	return takes
}

func (n *Node) idle() bool { return n.down || n.resumed != nil || n.behind != nil }

// serve is silent to what it does not understand.
func (n *Node) serve(k *conn, body []byte) {
	q := new(frame.Request)
	if frame.Decode(body, q) != nil {
		return
	}
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	for n.resumed != nil {
		resumed := n.resumed
		n.c.mu.Unlock()
		<-resumed
		n.c.mu.Lock()
	}
	if !n.down && k.alive() {
		n.meet(k, q)
	}
}

// meet has the request meet its fault.
func (n *Node) meet(k *conn, q *frame.Request) {
	fault := None
	if n.fault != nil && q.Type != frame.Heartbeat {
		fault = n.fault(q)
	}
	nowhere := &conn{ended: true}
	switch fault {
	case LoseBefore:
	case CutBefore:
		k.cut()
	case LoseAfter:
		n.do(nowhere, k, q)
	case CutAfter:
		n.do(nowhere, k, q)
		k.cut()
	case Fail:
		n.answer(k, q, &frame.Response{Status: frame.Error})
	case FailAfter:
		n.do(nowhere, k, q)
		n.answer(k, q, &frame.Response{Status: frame.Error})
	case Hold:
		n.held = append(n.held, func() { n.do(k, k, q) })
	case HoldAnswer:
		kept := &conn{more: make(chan struct{}, 1)}
		n.do(kept, k, q)
		n.held = append(n.held, func() { k.send(kept.out) })
	default:
		n.do(k, k, q)
	}
}

// do carries a request out. Its answer goes to k, and events to the connection that it came on.
func (n *Node) do(k, from *conn, q *frame.Request) {
	switch g := n.group(q.Group); {
	case q.Type == frame.Heartbeat:
		n.answer(k, q, &frame.Response{})
	case q.Type > frame.Renew || q.Kind.Type > 1 || q.Group >= int32(len(n.c.groups)):
	case g == nil:
		n.redirect(k, q, "0.0.0.0:0")
	case g.master != 0 && g.master != n.seq && n.behind == nil && q.Hops < 3:
		n.redirect(k, q, net.JoinHostPort(n.master(g).ip, strconv.Itoa(n.master(g).port()+1001)))
	case g.master != 0 && g.master != n.seq && n.behind == nil && !n.master(g).idle():
		q.Hops = 0
		n.master(g).operate(k, &conn{ended: true}, g, q) // its events are lost
	default:
		n.operate(k, from, g, q)
	}
}

func (n *Node) group(id int32) *group {
	if id < 0 || int(id) >= len(n.c.groups) {
		return nil
	}
	return n.c.groups[id]
}

func (n *Node) master(g *group) *Node { return n.c.nodes[g.master-1] }

func (n *Node) redirect(k *conn, q *frame.Request, to string) {
	n.answer(k, q, &frame.Response{Status: frame.Redirect, Hops: q.Hops, Properties: "PROPERTY_MASTER!" + to + "^"})
}

func (n *Node) answer(k *conn, q *frame.Request, a *frame.Response) {
	a.Type, a.Session, a.Key = q.Type, q.Session, q.Key
	n.send(k, frame.Append(nil, a))
}

func (n *Node) send(k *conn, b []byte) {
	if n.mangle != nil {
		b = n.mangle(b)
		if n.once {
			n.mangle = nil
		}
	}
	if k.alive() && b != nil {
		k.send(b)
	}
}

// event is sent by masters only, and to a connection that lives.
func (n *Node) event(g *group, k *conn, key string, owner frame.Owner, what frame.Lock) {
	if k == nil || g.master != n.seq {
		return
	}
	clear(owner[12:])
	n.c.session++
	n.send(k, frame.Append(nil, &frame.Request{
		Type: frame.Event, Session: n.c.session, Key: key, Owner: owner, Stamp: time.Now().UnixMilli(), Lock: what,
	}))
}
