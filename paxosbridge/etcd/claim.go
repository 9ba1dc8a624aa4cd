package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/paxosbridge"
)

var _ paxosbridge.Claimer = (*Cluster)(nil)

// claimName is where the owner of the records stands.
func (c *Cluster) claimName() string { return c.prefix + "t" }

// ClaimFor writes the owner of all records under the prefix, unless there is one, and returns the
// first. See [paxosbridge.Claimer].
func (c *Cluster) ClaimFor(ctx context.Context, owner string) (first string, err error) {
	name := c.claimName()
	_, err = c.write(ctx, "claim", name, func(ctx context.Context) error {
		resp, err := c.kv.Txn(ctx).If(clientv3.Compare(clientv3.Version(name), "=", 0)).
			Then(clientv3.OpPut(name, owner)).Else(clientv3.OpGet(name)).Commit()
		if err != nil {
			return err
		}
		first = owner
		if !resp.Succeeded {
			first = string(resp.Responses[0].GetResponseRange().Kvs[0].Value)
		}
		return nil
	})
	return first, err
}
