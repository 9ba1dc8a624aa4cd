package etcd

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/internal/request"
)

// Release releases leases, ended or not, in one round trip; a lease without a token takes two. See
// [lease.Store].
func (c *Cluster) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	out := make([]lease.Released, len(leases))
	var changes []change
	silent := false // once etcd does not answer, the rest of the batch is not sent
	for i, l := range leases {
		if l.Token == 0 && !l.Owner.IsZero() && !silent {
			l.Token, out[i].Err = c.tokenOf(ctx, l)
			silent = out[i].Err != nil && (errors.Is(out[i].Err, lease.ErrBusy) || ctx.Err() != nil)
		}
		if out[i].Err == nil && (silent || isGrantable(l)) {
			changes = append(changes, c.release(l, &out[i]))
		} else {
			out[i].Gone = out[i].Err == nil
		}
	}
	if silent {
		unsent("release", changes)
	} else {
		c.apply(ctx, "release", changes)
	}
	return request.Alone(out, func(r lease.Released) error { return r.Err })
}

// tokenOf returns the token of the owner's lease if the record names the owner; otherwise 0.
func (c *Cluster) tokenOf(ctx context.Context, l lease.Lease) (lease.Token, error) {
	got, err := c.view(ctx, "release", l.Key, clientv3.OpGet(c.recordOf(l.Key)))
	if err != nil {
		return 0, err
	}
	r, err := parse(first(got.Responses[0]))
	if err != nil || r.owner != l.Owner || r.state != open {
		return 0, err
	}
	return r.token(), nil
}

// release clears the record's owner, so that a released lease cannot be handed over as an ended one
// can.
func (c *Cluster) release(l lease.Lease, out *lease.Released) change {
	return change{
		key: l.Key,
		plan: func(term) plan {
			free := record{epoch: lease.Epoch(l.Token), state: open}
			ops := []clientv3.Op{
				clientv3.OpPut(c.recordOf(l.Key), free.value()),
				clientv3.OpDelete(c.holderOf(l.Key)),
			}
			return plan{c.isLast(l), ops, nil}
		},
		read: func(resp *pb.TxnResponse, uncertain bool) {
			out.Gone = !resp.Succeeded && !uncertain // an earlier try may have released it
		},
		fail: func(err error) { out.Err = err },
	}
}
