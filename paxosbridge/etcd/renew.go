package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/internal/request"
)

// Renew extends leases that are still held, 64 in a round trip. See [lease.Store]. It reports no
// clock.
func (c *Cluster) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	out := make([]lease.Renewed, len(reqs))
	var changes []change
	for i, q := range reqs {
		if isGrantable(q.Lease) { // else Lost, because it was never granted
			changes = append(changes, c.renew(q, &out[i]))
		}
	}
	c.apply(ctx, "renew", changes)
	return request.Alone(out, func(r lease.Renewed) error { return r.Err })
}

// isGrantable reports whether a lease can have been granted.
func isGrantable(l lease.Lease) bool {
	return len(l.Key) > 0 && len(l.Key) <= lease.MaxKey && !l.Owner.IsZero() && l.Token > 0
}

// renew attaches the key's holder to a newer loan.
func (c *Cluster) renew(q lease.RenewRequest, out *lease.Renewed) change {
	return change{
		key: q.Key, ttl: &q.TTL,
		plan: func(t term) plan {
			return plan{
				append(c.isLast(q.Lease), c.isHeld(q.Key)), []clientv3.Op{c.hold(q.Key, t)}, nil,
			}
		},
		read: func(resp *pb.TxnResponse, _ bool) {
			if resp.Succeeded {
				out.Outcome = lease.Extended
			}
		},
		fail: func(err error) { out.Err = err },
	}
}
