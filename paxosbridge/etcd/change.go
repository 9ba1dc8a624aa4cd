package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/lease"
)

// mostTogether is how many changes become one transaction. By default etcd accepts 128 operations,
// of all levels of one path together, and 1.5 MB.
const mostTogether = 64

// change is a transaction about one key.
type change struct {
	key string
	// ttl is of the lease that the change grants or renews; nil if it does neither.
	ttl *time.Duration
	// plan returns what to send. It is called for each try, because each has a loan of its own.
	plan func(t term) plan
	// read takes the answer.
	read func(resp *pb.TxnResponse, uncertain bool)
	// fail takes the error, if there is no answer.
	fail func(err error)
}

// plan is If, Then and Else of a transaction.
type plan struct {
	guards         []clientv3.Cmp
	changes, reads []clientv3.Op
}

func (p plan) op() clientv3.Op { return clientv3.OpTxn(p.guards, p.changes, p.reads) }

// apply makes changes, each on its own whether or not etcd refuses others, and many in one
// transaction. Changes of one key go into consecutive transactions, because etcd puts a key only
// once in each. Once etcd does not answer, apply sends nothing more.
func (c *Cluster) apply(ctx context.Context, verb string, changes []change) {
	for len(changes) > 0 {
		var now, later []change
		taken := make(map[string]bool)
		for _, ch := range changes {
			if len(now) == mostTogether || taken[ch.key] {
				later = append(later, ch)
				continue
			}
			taken[ch.key] = true
			now = append(now, ch)
		}
		err := c.applyTogether(ctx, verb, now)
		if errors.Is(err, lease.ErrUnknown) || errors.Is(err, lease.ErrBusy) {
			unsent(verb, later)
			return
		}
		changes = later
	}
}

// unsent fails changes that follow one without an answer.
func unsent(verb string, changes []change) {
	for _, ch := range changes {
		ch.fail(fmt.Errorf("%w: %s %q: not sent, because an earlier item of the batch had no answer",
			lease.ErrBusy, verb, ch.key))
	}
}

func (c *Cluster) applyTogether(ctx context.Context, verb string, changes []change) error {
	var resp *pb.TxnResponse
	uncertain, err := c.write(ctx, verb, changes[0].key, func(ctx context.Context) (err error) {
		resp, err = c.commit(ctx, changes)
		return err
	})
	if uncertain {
		c.unknown.Note()
	}
	for i, ch := range changes {
		switch {
		case err != nil:
			ch.fail(err)
		case len(changes) == 1:
			ch.read(resp, uncertain)
		default:
			ch.read(resp.Responses[i].GetResponseTxn(), uncertain)
		}
	}
	return err
}

// commit sends one transaction: a single change as it is, several as transactions within one that
// has no guards.
func (c *Cluster) commit(ctx context.Context, changes []change) (*pb.TxnResponse, error) {
	terms := make([]term, len(changes))
	plans := make([]plan, len(changes))
	for i, ch := range changes {
		if ch.ttl != nil {
			var err error
			if terms[i], err = c.loans.lend(ctx, *ch.ttl); err != nil {
				return nil, err
			}
		}
		plans[i] = ch.plan(terms[i])
	}
	all := plans[0]
	if len(plans) > 1 {
		all = plan{}
		for _, p := range plans {
			all.changes = append(all.changes, p.op())
		}
	}
	resp, err := c.kv.Txn(ctx).If(all.guards...).Then(all.changes...).Else(all.reads...).Commit()
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		c.loans.drop(terms)
	}
	return (*pb.TxnResponse)(resp), err
}

// readKey reads a key's record and its holder: why a transaction changed nothing.
func (c *Cluster) readKey(key string) []clientv3.Op {
	return []clientv3.Op{clientv3.OpGet(c.recordOf(key)), clientv3.OpGet(c.holderOf(key))}
}

// keyIn returns what readKey has read.
func keyIn(resp *pb.TxnResponse) (r record, holder *mvccpb.KeyValue, err error) {
	r, err = parse(first(resp.Responses[0]))
	return r, first(resp.Responses[1]), err
}

// first returns the key of an answer to a read, or nil.
func first(r *pb.ResponseOp) *mvccpb.KeyValue {
	if kvs := r.GetResponseRange().GetKvs(); len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

// grant puts a lease into the key's record, puts the key's holder, and reads the counter that this
// makes.
func (c *Cluster) grant(q lease.AcquireRequest, epoch int64, t term) []clientv3.Op {
	r := record{epoch: epoch, state: open, owner: q.Owner, granted: time.Now(), note: q.Note}
	return []clientv3.Op{
		clientv3.OpPut(c.recordOf(q.Key), r.value()),
		c.hold(q.Key, t),
		clientv3.OpGet(c.recordOf(q.Key), clientv3.WithKeysOnly()),
	}
}

// granted is the answer to grant.
func granted(resp *pb.TxnResponse, epoch int64) lease.Acquired {
	return lease.Acquired{
		Granted: true, Token: lease.EpochStart(epoch) | lease.Token(first(resp.Responses[2]).Version),
	}
}
