package etcd

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// Cluster is a paxosbridge.Cluster on etcd. Make one with [New]; it may be used by many goroutines.
type Cluster struct {
	client  *clientv3.Client
	kv      clientv3.KV
	prefix  string
	timeout time.Duration
	silence time.Duration // after which a watch is believed dead
	last    int64         // the last counter of a token
	loans   *loans
	unheard atomic.Int64 // when a grant last had an unknown outcome, in Unix nanoseconds

	ctx   context.Context // ends with Close
	close context.CancelFunc
}

var (
	_ paxosbridge.Cluster = (*Cluster)(nil)
	_ lease.Passer        = (*Cluster)(nil)
	_ lease.Notifier      = (*Cluster)(nil)
)

// lastCounter is the last counter that leaves the epoch of a token alone.
const lastCounter = 1<<lease.EpochShift - 1

// Option is a setting of [New].
type Option func(*Cluster)

// Prefix is what all names begin with that are written to etcd; the default is "rowlock/". All processes that share keys need the same.
func Prefix(prefix string) Option { return func(c *Cluster) { c.prefix = prefix } }

// Timeout bounds one call, with all its tries; the default is 5 s. An election takes etcd one or two seconds, in which calls wait. A
// member that has not answered after an eighth of the timeout is left for another, that after a quarter, and so on.
func Timeout(d time.Duration) Option { return func(c *Cluster) { c.timeout = d } }

// New returns a Cluster that talks through client, which it does not close. It writes and reads once, to see that it may: an error says
// that it may not, or that the cluster does not answer, in which case New can be called again.
//
// A client finds out that a member has vanished without a word only if its Config has DialKeepAliveTime and DialKeepAliveTimeout; a few
// seconds are right. Wrappers that were put into the client, as those of clientv3/namespace are, are passed by: use [Prefix].
func New(ctx context.Context, client *clientv3.Client, opts ...Option) (*Cluster, error) {
	c := &Cluster{client: client, prefix: "rowlock/", timeout: 5 * time.Second, silence: 3 * time.Second, last: lastCounter}
	for _, o := range opts {
		o(c)
	}
	switch {
	case client == nil:
		return nil, fmt.Errorf("%w: etcd.New without a client", lease.ErrConfig)
	case c.prefix == "":
		return nil, fmt.Errorf("%w: etcd.Prefix is empty; what else is in the cluster could not be told from rowlock's", lease.ErrConfig)
	case c.timeout <= 0:
		return nil, fmt.Errorf("%w: etcd.Timeout is %s; it must be above 0", lease.ErrConfig, c.timeout)
	}
	c.kv = clientv3.NewKVFromKVClient(wire{pb.NewKVClient(client.ActiveConnection())}, client)
	c.ctx, c.close = context.WithCancel(context.Background())
	c.loans = newLoans(c.ctx, client, c.timeout)
	if err := c.Probe(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends all goroutines, and has every Listen return. Leases that are held stay until they end; release them before. Calls return
// [lease.ErrClosed] from then on.
func (c *Cluster) Close() error {
	c.close()
	c.loans.wait()
	return nil
}

// Probe writes to etcd and reads what is there now.
func (c *Cluster) Probe(ctx context.Context) error {
	key := c.prefix + "p"
	_, err := c.write(ctx, "probe", key, func(ctx context.Context) error {
		_, err := c.kv.Txn(ctx).Then(clientv3.OpPut(key, fmt.Sprint(time.Now().UnixMilli()))).Commit()
		return err
	})
	if err != nil {
		return err
	}
	_, err = c.get(ctx, "probe", key, key)
	return err
}

// get reads with a transaction of its own what every member agrees on.
func (c *Cluster) get(ctx context.Context, verb, key, name string, opts ...clientv3.OpOption) (*pb.RangeResponse, error) {
	var got *pb.RangeResponse
	err := c.read(ctx, verb, key, func(ctx context.Context) error {
		resp, err := c.kv.Txn(ctx).Then(clientv3.OpGet(name, opts...)).Commit()
		if err == nil {
			got = resp.Responses[0].GetResponseRange()
		}
		return err
	})
	return got, err
}
