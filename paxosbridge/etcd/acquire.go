package etcd

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// Acquire grants what is free, in one round trip. See [lease.Store] and [paxosbridge.Cluster]. A request without an epoch for a key that
// is open in one takes two.
func (c *Cluster) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	asking, cancel := context.WithTimeout(ctx, c.timeout) // how long holders have to go, for all of them
	defer cancel()
	out := make([]lease.Acquired, len(reqs))
	var changes []change
	for i, q := range reqs {
		if err := check(q); err != nil {
			out[i].Err = err
			continue
		}
		changes = append(changes, c.acquire(asking, q, q.Epoch, &out[i]))
	}
	c.apply(ctx, "acquire", changes)
	for i, q := range reqs {
		c.follow(ctx, q, &out[i])
	}
	return out, only(out, func(a lease.Acquired) error {
		if errors.Is(a.Err, paxosbridge.ErrRecord) && !errors.Is(a.Err, lease.ErrUnknown) {
			return nil // an answer, not a failure
		}
		return a.Err
	})
}

// elsewhere is why a request without an epoch is sent again: the key is open in this one.
type elsewhere struct{ epoch int64 }

func (e *elsewhere) Error() string { return fmt.Sprintf("the key is open in epoch %d", e.epoch) }

// follow sends a request without an epoch again, in the epoch that was found. It may be another by then, but not often.
func (c *Cluster) follow(ctx context.Context, q lease.AcquireRequest, out *lease.Acquired) {
	for range 3 {
		var e *elsewhere
		if !errors.As(out.Err, &e) {
			return
		}
		doubtful := out.Doubtful
		*out = lease.Acquired{}
		c.apply(ctx, "acquire", []change{c.acquire(ctx, q, e.epoch, out)})
		out.Doubtful = out.Doubtful || doubtful
	}
	if e := (*elsewhere)(nil); errors.As(out.Err, &e) {
		out.Err = fmt.Errorf("%w: acquire %q: its epoch goes on changing", lease.ErrBusy, q.Key)
	}
}

// check refuses what etcd would take and no table.
func check(q lease.AcquireRequest) error {
	err := q.Check()
	if err == nil && q.Epoch != 0 {
		err = checkEpoch("acquire", q.Key, q.Epoch)
	}
	return err
}

// checkEpoch refuses epochs that tokens have no room for.
func checkEpoch(verb, key string, epoch int64) error {
	if most := lease.Epoch(lease.MaxToken); epoch < 1 || epoch > most {
		return fmt.Errorf("%w: %s %q: epoch %d; use 1 to %d", lease.ErrConfig, verb, key, epoch, most)
	}
	return nil
}

// acquire grants the key in an epoch if it is open and free there. In epoch 0 it may have no record.
func (c *Cluster) acquire(ctx context.Context, q lease.AcquireRequest, epoch int64, out *lease.Acquired) change {
	return change{
		key: q.Key, ttl: &q.TTL,
		plan: func(t term) plan {
			grant := c.grant(q, epoch, t)
			p := plan{append(c.begins(q.Key, stem(epoch, open)), c.isFree(q.Key), c.isRoom(q.Key)), grant, c.look(q.Key)}
			if epoch == 0 {
				none := []clientv3.Cmp{clientv3.Compare(clientv3.Version(c.recordOf(q.Key)), "=", 0), c.isFree(q.Key)}
				p.reads = []clientv3.Op{plan{none, grant, c.look(q.Key)}.op()}
			}
			return p
		},
		read: func(resp *pb.TxnResponse, doubtful bool) {
			if epoch == 0 && !resp.Succeeded {
				resp = resp.Responses[0].GetResponseTxn()
			}
			*out = c.acquired(ctx, q, epoch, resp)
			out.Doubtful = doubtful
			if doubtful && out.Err != nil && !isPast(out.Err, epoch) {
				out.Err = errors.Join(lease.ErrUnknown, out.Err) // this try is known to have failed; an earlier one may be late
			}
		},
		fail: func(err error) { *out = lease.Acquired{Err: err} },
	}
}

// isPast says that the record has gone past an epoch for good: whatever was tried in it is worth nothing, and what is late will be refused.
func isPast(err error, epoch int64) bool {
	var r *paxosbridge.RecordError
	return errors.As(err, &r) && (r.Epoch > epoch || r.Epoch == epoch && r.Sealed)
}

func (c *Cluster) acquired(ctx context.Context, q lease.AcquireRequest, epoch int64, resp *pb.TxnResponse) lease.Acquired {
	if resp.Succeeded {
		return granted(resp, epoch)
	}
	r, holder, err := seen(resp)
	switch {
	case err != nil:
		return lease.Acquired{Err: err}
	case q.Epoch == 0 && r.state == open && r.epoch != epoch:
		return lease.Acquired{Err: &elsewhere{r.epoch}}
	case r.absent() || r.state == sealed || r.epoch != epoch:
		return lease.Acquired{Err: &paxosbridge.RecordError{
			Record: paxosbridge.Record{Key: q.Key, Epoch: r.epoch, Sealed: r.state == sealed}, Asked: q.Epoch,
		}}
	case holder == nil:
		return lease.Acquired{Err: fmt.Errorf("%w: acquire %q: the last was %d", lease.ErrTokenExhausted, q.Key, r.token())}
	case r.owner == q.Owner:
		return lease.Acquired{Granted: true, Token: r.token()}
	}
	return lease.Acquired{Holder: c.shown(ctx, r, holder)}
}

func (c *Cluster) shown(ctx context.Context, r record, holder *mvccpb.KeyValue) lease.Holder {
	return lease.Holder{Note: r.note, Remaining: c.remaining(ctx, holder)}
}
