package etcd

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/internal/request"
)

// Acquire grants free keys, in one round trip. See [lease.Store] and [paxosbridge.Cluster]. A
// request without an epoch takes two if the key is open in one.
func (c *Cluster) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	asking, cancel := context.WithTimeout(ctx, c.timeout) // for what is left of all holders' leases
	defer cancel()
	out := make([]lease.Acquired, len(reqs))
	var changes []change
	for i, q := range reqs {
		if err := request.Check(q, lastEpoch); err != nil {
			out[i].Err = err
			continue
		}
		changes = append(changes, c.acquire(asking, q, q.Epoch, &out[i]))
	}
	c.apply(ctx, "acquire", changes)
	for i, q := range reqs {
		c.follow(ctx, q, &out[i])
	}
	return request.Acquired(out)
}

// otherEpoch is why a request without an epoch is sent again: the key is open in this one.
type otherEpoch struct{ epoch int64 }

func (e *otherEpoch) Error() string { return fmt.Sprintf("the key is open in epoch %d", e.epoch) }

// follow sends a request without an epoch again, in the epoch that was found. The epoch seldom
// changes meanwhile.
func (c *Cluster) follow(ctx context.Context, q lease.AcquireRequest, out *lease.Acquired) {
	for range 3 {
		var e *otherEpoch
		if !errors.As(out.Err, &e) {
			return
		}
		uncertain := out.Unknown
		*out = lease.Acquired{}
		c.apply(ctx, "acquire", []change{c.acquire(ctx, q, e.epoch, out)})
		out.Unknown = out.Unknown || uncertain
	}
	if e := (*otherEpoch)(nil); errors.As(out.Err, &e) {
		out.Err = fmt.Errorf("%w: acquire %q: its epoch keeps changing", lease.ErrBusy, q.Key)
	}
}

// acquire grants the key if it is open in epoch and free. In epoch 0 it may have no record.
func (c *Cluster) acquire(
	ctx context.Context, q lease.AcquireRequest, epoch int64, out *lease.Acquired,
) change {
	return change{
		key: q.Key, ttl: &q.TTL,
		plan: func(t term) plan {
			grant, isFree := c.grant(q, epoch, t), c.isFree(q.Key)
			p := plan{
				append(c.begins(q.Key, stem(epoch, open)), isFree, c.hasRoom(q.Key)), grant,
				c.readKey(q.Key),
			}
			if epoch == 0 {
				none := []clientv3.Cmp{
					clientv3.Compare(clientv3.Version(c.recordOf(q.Key)), "=", 0), isFree,
				}
				p.reads = []clientv3.Op{plan{none, grant, c.readKey(q.Key)}.op()}
			}
			return p
		},
		read: func(resp *pb.TxnResponse, uncertain bool) {
			if epoch == 0 && !resp.Succeeded {
				resp = resp.Responses[0].GetResponseTxn()
			}
			*out = c.acquired(ctx, q, epoch, resp)
			out.Unknown = uncertain
			if uncertain && out.Err != nil && !isPast(out.Err, epoch) {
				// This try failed; an earlier one may be late.
				out.Err = oneline.Join(lease.ErrUnknown, out.Err)
			}
		},
		fail: func(err error) { *out = lease.Acquired{Err: err} },
	}
}

// isPast reports whether the record has gone past an epoch for good. Then no try in that epoch
// counts, and a late one is refused.
func isPast(err error, epoch int64) bool {
	var r *paxosbridge.RecordError
	return errors.As(err, &r) && (r.Epoch > epoch || r.Epoch == epoch && r.Sealed)
}

func (c *Cluster) acquired(
	ctx context.Context, q lease.AcquireRequest, epoch int64, resp *pb.TxnResponse,
) lease.Acquired {
	if resp.Succeeded {
		return granted(resp, epoch)
	}
	r, holder, err := keyIn(resp)
	switch {
	case err != nil:
	case q.Epoch == 0 && r.state == open && r.epoch != epoch:
		err = &otherEpoch{r.epoch}
	case r.absent() || r.state == sealed || r.epoch != epoch:
		err = &paxosbridge.RecordError{
			Record: paxosbridge.Record{Key: q.Key, Epoch: r.epoch, Sealed: r.state == sealed},
			Asked:  q.Epoch,
		}
	case holder == nil:
		err = fmt.Errorf(
			"%w: acquire %q: the last was %d", lease.ErrTokenExhausted, q.Key, r.token(),
		)
	case r.owner == q.Owner:
		return lease.Acquired{Granted: true, Token: r.token()}
	default:
		return lease.Acquired{
			Holder: lease.Holder{Note: r.noteCut(), Remaining: c.remaining(ctx, holder)},
		}
	}
	return lease.Acquired{Err: err}
}
