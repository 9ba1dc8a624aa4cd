package etcd

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/internal/request"
)

// Open opens key in epoch, in one round trip. See [paxosbridge.Cluster]. A lease of an older epoch
// may still be held if a database has forgotten a commit. Such a lease cannot be renewed, and an
// acquire waits until it ends.
func (c *Cluster) Open(ctx context.Context, key string, epoch int64) error {
	return c.raise(ctx, "open", key, record{epoch: epoch, state: open})
}

// Supersede seals key in epoch, held or not, in one round trip. See [paxosbridge.Cluster].
func (c *Cluster) Supersede(ctx context.Context, key string, epoch int64) error {
	return c.raise(
		ctx, "supersede", key, record{epoch: epoch, state: sealed},
		clientv3.OpDelete(c.holderOf(key)),
	)
}

// raise puts a record if there is none or one of an older epoch. The epoch without its state sorts
// below every record of that epoch.
func (c *Cluster) raise(ctx context.Context, verb, key string, r record, more ...clientv3.Op) error {
	if err := request.CheckEpoch(verb, key, r.epoch, lastEpoch); err != nil {
		return err
	}
	name := c.recordOf(key)
	put := append([]clientv3.Op{clientv3.OpPut(name, r.value())}, more...)
	older := []clientv3.Cmp{
		clientv3.Compare(clientv3.Value(name), "<", fmt.Sprintf("%016x", r.epoch)),
	}
	none := []clientv3.Cmp{clientv3.Compare(clientv3.Version(name), "=", 0)}
	var failed error
	c.apply(ctx, verb, []change{{
		key:  key,
		plan: func(term) plan { return plan{older, put, []clientv3.Op{plan{none, put, nil}.op()}} },
		read: func(*pb.TxnResponse, bool) {},
		fail: func(err error) { failed = err },
	}})
	return failed
}

// Seal closes the epoch of a lease for good if the lease holds the key, in one round trip. See
// [paxosbridge.Cluster].
func (c *Cluster) Seal(ctx context.Context, l lease.Lease) (ok bool, err error) {
	if !isGrantable(l) {
		return false, nil
	}
	name := c.recordOf(l.Key)
	end := record{epoch: lease.Epoch(l.Token), state: sealed, owner: l.Owner}
	c.apply(ctx, "seal", []change{{
		key: l.Key,
		plan: func(term) plan {
			return plan{
				append(c.isLast(l), c.isHeld(l.Key)),
				[]clientv3.Op{
					clientv3.OpPut(name, end.value()), clientv3.OpDelete(c.holderOf(l.Key)),
				},
				[]clientv3.Op{clientv3.OpGet(name)},
			}
		},
		read: func(resp *pb.TxnResponse, uncertain bool) {
			ok = resp.Succeeded
			if !ok && uncertain {
				ok, err = isSealedBy(l, first(resp.Responses[0]))
			}
		},
		fail: func(e error) { err = e },
	}})
	return ok, err
}

// isSealedBy reports whether this lease has sealed its epoch in an earlier try.
func isSealedBy(l lease.Lease, kv *mvccpb.KeyValue) (bool, error) {
	r, err := parse(kv)
	return err == nil && r.state == sealed && r.owner == l.Owner && r.token() == l.Token, err
}

// Records lists records in key order. See [paxosbridge.Cluster]. A limit of 0 means 1000.
func (c *Cluster) Records(ctx context.Context, after string, limit int) ([]paxosbridge.Record, error) {
	rows, err := c.list(ctx, "list records", lease.Filter{After: after, Limit: limit})
	if err != nil {
		return nil, err
	}
	out := make([]paxosbridge.Record, len(rows))
	for i, row := range rows {
		out[i] = paxosbridge.Record{Key: row.key, Epoch: row.epoch, Sealed: row.state == sealed, Err: row.bad}
	}
	return out, nil
}
