package etcd

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/internal/unknown"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Cluster is a paxosbridge.Cluster on etcd. Make one with [New]. Many goroutines may use it.
type Cluster struct {
	client  *clientv3.Client
	kv      clientv3.KV
	prefix  string
	timeout time.Duration
	silence time.Duration // after which a watch is believed dead
	last    int64         // the last counter of a token
	loans   *loans
	unknown unknown.Last // of a request that may grant

	ctx   context.Context // ends with Close
	close context.CancelFunc
}

var _ paxosbridge.Cluster = (*Cluster)(nil)

const (
	// lastCounter is the last counter of an epoch.
	lastCounter = 1<<lease.EpochShift - 1
	// lastEpoch is the last epoch that a token has room for.
	lastEpoch = int64(lease.MaxToken >> lease.EpochShift)
)

// Option is a setting of [New].
type Option func(*Cluster)

// Prefix is the beginning of all names that are written to etcd. Default "rowlock/". All processes
// that share keys must use the same.
func Prefix(prefix string) Option { return func(c *Cluster) { c.prefix = prefix } }

// Timeout bounds one call with all its tries. Default 5 s. An election takes etcd one or two
// seconds, in which calls wait. A call leaves a member that has not answered after an eighth of the
// timeout for another, and that one after a quarter.
func Timeout(d time.Duration) Option { return func(c *Cluster) { c.timeout = d } }

// New returns a Cluster that talks through client, which it does not close. It writes and reads
// once. An error says that it may not, or that the cluster does not answer; then New can be called
// again.
//
// Set DialKeepAliveTime and DialKeepAliveTimeout in the client's Config to a few seconds, or the
// client does not notice a member that has vanished. Cluster bypasses wrappers in the client, for
// example those of clientv3/namespace: use [Prefix] instead.
func New(ctx context.Context, client *clientv3.Client, opts ...Option) (*Cluster, error) {
	c := &Cluster{
		client: client, prefix: "rowlock/", timeout: 5 * time.Second, silence: 3 * time.Second,
		last: lastCounter,
	}
	for _, o := range opts {
		o(c)
	}
	switch {
	case ctx == nil:
		return nil, isnil.Context("etcd.New", ctx)
	case client == nil:
		return nil, fmt.Errorf("%w: etcd.New needs a client", lease.ErrConfig)
	case c.prefix == "":
		return nil, fmt.Errorf(
			"%w: etcd.Prefix is empty; it must tell rowlock's keys from other keys in the cluster",
			lease.ErrConfig,
		)
	case c.timeout <= 0:
		return nil, fmt.Errorf(
			"%w: etcd.Timeout is %s; it must be above 0", lease.ErrConfig, c.timeout,
		)
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

// Close ends all goroutines and every Listen. Leases that are held stay until they end, so release
// them first. Later calls return [lease.ErrClosed].
func (c *Cluster) Close() error {
	c.close()
	c.loans.wait()
	return nil
}

// Probe writes to etcd and reads by consensus.
func (c *Cluster) Probe(ctx context.Context) error {
	key := c.prefix + "p"
	_, err := c.write(ctx, "probe", key, func(ctx context.Context) error {
		_, err := c.kv.Txn(ctx).Then(
			clientv3.OpPut(key, fmt.Sprint(time.Now().UnixMilli())),
		).Commit()
		return err
	})
	if err != nil {
		return err
	}
	_, err = c.view(ctx, "probe", key, clientv3.OpGet(key))
	return err
}

// view reads names at one moment, by consensus.
func (c *Cluster) view(
	ctx context.Context, verb, key string, ops ...clientv3.Op,
) (got *pb.TxnResponse, err error) {
	err = c.read(ctx, verb, key, func(ctx context.Context) error {
		resp, err := c.kv.Txn(ctx).Then(ops...).Commit()
		got = (*pb.TxnResponse)(resp)
		return err
	})
	return got, err
}

// serverBound is how long an etcd server works on a request that its client has abandoned: 5 s for
// the proposal and two election timeouts, of 1 s each unless the server is configured otherwise.
const serverBound = 7 * time.Second

// Settle returns when etcd has given up every request whose outcome was unknown before the call, or
// with ctx. etcd does not say when that is, so Settle waits for as long as a server may take.
func (c *Cluster) Settle(ctx context.Context) { c.unknown.Wait(ctx, serverBound) }

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
