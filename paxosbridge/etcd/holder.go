package etcd

import (
	"context"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// hold puts the key that says that a lock is held, for as long as the loan lasts. Its value is by
// how many milliseconds the loan outlasts the lock's TTL.
func (c *Cluster) hold(key string, t term) clientv3.Op {
	spare := strconv.FormatInt(t.spare.Milliseconds(), 10)
	return clientv3.OpPut(c.holderOf(key), spare, clientv3.WithLease(t.id))
}

// remaining returns what is left of a lock's TTL; 0 if the TTL is over and etcd has not noticed
// yet.
func (c *Cluster) remaining(ctx context.Context, holder *mvccpb.KeyValue) time.Duration {
	spare, _ := strconv.ParseInt(string(holder.Value), 10, 64)
	left := c.loans.remaining(ctx, clientv3.LeaseID(holder.Lease))
	return max(0, left-time.Duration(spare)*time.Millisecond)
}
