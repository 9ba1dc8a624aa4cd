package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/lease"
)

// Renew extends leases that are still owned and alive, 64 in a round trip. See [lease.Store]. No clock is told.
func (c *Cluster) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	out := make([]lease.Renewed, len(reqs))
	var changes []change
	for i, q := range reqs {
		if isTerm(q.Lease) { // nothing else was ever granted: Lost
			changes = append(changes, c.renew(q, &out[i]))
		}
	}
	c.apply(ctx, "renew", changes)
	return out, only(out, func(r lease.Renewed) error { return r.Err })
}

// isTerm says that a lease can have been granted.
func isTerm(l lease.Lease) bool {
	return len(l.Key) > 0 && len(l.Key) <= lease.MaxKey && !l.Owner.IsZero() && l.Token > 0
}

// renew attaches the key's holder to a newer loan.
func (c *Cluster) renew(q lease.RenewRequest, out *lease.Renewed) change {
	return change{
		key: q.Key, ttl: q.TTL,
		plan: func(t term) plan {
			return plan{append(c.isLast(q.Lease), c.isAlive(q.Key)), []clientv3.Op{c.hold(q.Key, t)}, nil}
		},
		read: func(resp *pb.TxnResponse, _ bool) {
			if resp.Succeeded {
				out.Outcome = lease.Extended
			}
		},
		fail: func(err error) { out.Err = err },
	}
}
