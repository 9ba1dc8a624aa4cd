package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/internal/request"
)

// HandOver grants leases to their next owners, in one round trip. See [lease.Passer]. It notifies
// no listener, because the key is never free.
func (c *Cluster) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	out := make([]lease.Acquired, len(items))
	var changes []change
	for i, h := range items {
		if err := h.Check(); err != nil {
			out[i].Err = err
		} else if isGrantable(h.From) {
			changes = append(changes, c.handOver(h, &out[i]))
		}
	}
	c.apply(ctx, "hand over", changes)
	return request.Alone(out, func(a lease.Acquired) error { return a.Err })
}

func (c *Cluster) handOver(h lease.HandOver, out *lease.Acquired) change {
	epoch := lease.Epoch(h.From.Token)
	return change{
		key: h.From.Key, ttl: &h.To.TTL,
		plan: func(t term) plan {
			return plan{
				append(c.isLast(h.From), c.hasRoom(h.From.Key)), c.grant(h.To, epoch, t),
				c.readKey(h.From.Key),
			}
		},
		read: func(resp *pb.TxnResponse, uncertain bool) {
			if resp.Succeeded {
				*out = granted(resp, epoch)
			} else {
				*out = handedOver(h, resp)
			}
			out.Unknown = uncertain
		},
		fail: func(err error) { *out = lease.Acquired{Err: err} },
	}
}

// handedOver reports a grant by an earlier try.
func handedOver(h lease.HandOver, resp *pb.TxnResponse) lease.Acquired {
	r, holder, err := keyIn(resp)
	switch {
	case err != nil:
		return lease.Acquired{Err: err}
	case holder == nil || r.state != open || r.owner != h.To.Owner || r.owner.IsZero():
		return lease.Acquired{}
	}
	return lease.Acquired{Granted: true, Token: r.token()}
}
