package etcd

import (
	"context"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// hold puts what says that the key is held for as long as the loan lasts. Its value is how much longer that is than the lease's TTL.
func (c *Cluster) hold(key string, t term) clientv3.Op {
	return clientv3.OpPut(c.holderOf(key), strconv.FormatInt(t.spare.Milliseconds(), 10), clientv3.WithLease(t.id))
}

// remaining is how much of its TTL a lease has still to go; 0 if that is over and etcd has not yet noticed.
func (c *Cluster) remaining(ctx context.Context, holder *mvccpb.KeyValue) time.Duration {
	spare, _ := strconv.ParseInt(string(holder.Value), 10, 64)
	return max(0, c.loans.remaining(ctx, clientv3.LeaseID(holder.Lease))-time.Duration(spare)*time.Millisecond)
}
