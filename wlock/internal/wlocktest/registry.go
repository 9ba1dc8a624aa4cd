package wlocktest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

type registry struct{ *Cluster }

func (r *registry) takes() bool { return true }

func (r *registry) serve(k *conn, body []byte) {
	var q frame.Control
	if frame.Decode(body, &q) != nil || q.Kind == frame.Ack {
		return
	}
	switch q.Op {
	case frame.Beat, frame.Version:
		k.send(frame.Append(nil, &frame.Control{Op: q.Op, Kind: frame.Ack, Session: q.Session, Payload: []byte{0, 0}}))
	case frame.Config:
		r.do(func() { r.config(k, &q) })
	}
}

func (r *registry) config(k *conn, q *frame.Control) {
	var ask struct {
		Key     string
		Version int64
	}
	known := json.Unmarshal(q.Payload, &ask) == nil && r.tenants[ask.Key]
	a := frame.Control{Op: q.Op, Session: q.Session}
	switch {
	case q.Kind == frame.All && !known:
		a.Kind, a.Payload = frame.Refused, []byte("client get all config error")
	case q.Kind == frame.All:
		a.Kind, a.Payload = frame.Whole, r.topology(ask.Key)
	case !known:
		a.Kind, a.Payload = frame.Unknown, []byte("client get changed config error")
	case ask.Version < r.version:
		a.Kind, a.Payload = frame.Changed, r.topology(ask.Key)
	default:
		a.Kind, a.Payload = frame.Same, r.topology(ask.Key)
	}
	k.asked = ask.Key
	k.send(frame.Append(nil, &a))
}

// Push tells every client that has asked of the present topology.
func (c *Cluster) Push() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guard.Lock()
	defer c.guard.Unlock()
	for k := range c.open {
		if k.asked != "" {
			k.send(frame.Append(nil, &frame.Control{Op: frame.Push, Kind: frame.Whole, Payload: c.topology(k.asked)}))
		}
	}
}

// topology is JSON but for the keys of allNodeMap, which are no strings.
func (c *Cluster) topology(tenant string) []byte {
	var nodes, groups []string
	for _, n := range c.nodes {
		nodes = append(nodes, fmt.Sprintf(`%d:{"ip":%q,"port":%d,"sequence":%d}`, n.seq, n.ip, n.port(), n.seq))
	}
	all := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		all[i] = fmt.Sprint(n.seq)
	}
	for _, g := range c.groups {
		if g.master > 0 && !c.hidden[g.id] {
			groups = append(groups, fmt.Sprintf(`{"groupId":%d,"masterNode":%d,"masterVersion":%d,"nodeList":[%s]}`,
				g.id, g.master, c.version, strings.Join(all, ",")))
		}
	}
	if len(groups) == 0 {
		return []byte(`{"autoRenew":false,"hashCode":0,"multiGroup":false,"version":0}`)
	}
	return fmt.Appendf(nil, `{"allNodeMap":{%s},"autoRenew":false,"groupId":0,"groupNodeList":[%s],`+
		`"hashCode":868793852,"key":%q,"multiGroup":true,"nodeList":[],"version":%d}`,
		strings.Join(nodes, ","), strings.Join(groups, ","), tenant, c.version)
}
