package corrupt

import (
	"context"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

const ttl = 20 * time.Second

func (r *run) acquire(ctx context.Context, d *draw) error {
	return r.granted(r.rows.Acquire(ctx, r.requests(d, "k", "k2")))
}

func (r *run) acquireOne(ctx context.Context, d *draw) error {
	return r.granted(r.rows.Acquire(ctx, r.requests(d, d.key())))
}

func (r *run) acquireAll(ctx context.Context, d *draw) error {
	return r.granted(r.store.AcquireAll(ctx, r.requests(d, "k", "k2")))
}

func (r *run) acquireAny(ctx context.Context, d *draw) error {
	return r.granted(r.store.AcquireAny(ctx, r.requests(d, "k", "k2"), 1))
}

func (r *run) claim(ctx context.Context, d *draw) error {
	return r.granted(r.store.Claim(ctx, r.requests(d, d.key())))
}

func (r *run) share(ctx context.Context, d *draw) error {
	r.sharing = true
	defer func() { r.sharing = false }()
	return r.granted(r.store.Share(ctx, r.requests(d, d.key())))
}

func (r *run) acquireWithin(ctx context.Context, d *draw) error {
	l := lease.Limit{Name: "s", Slots: 1 + d.next(3)}
	return r.granted(r.store.AcquireWithin(ctx, l, r.requests(d, "s/000"), 1))
}

func (r *run) limit(ctx context.Context, d *draw) error {
	l := lease.Limit{Name: "s", Slots: 1 + d.next(3)}
	_, err := r.store.MakeLimit(ctx, l)
	return first(err, r.store.Resize(ctx, l))
}

func (r *run) join(ctx context.Context, d *draw) error {
	t := lease.Ticket{AcquireRequest: r.requests(d, d.key())[0], Priority: 1}
	r.waiters = append(r.waiters, lease.Lease{Key: t.Key, Owner: t.Owner})
	_, err := r.store.Join(ctx, []lease.Ticket{t})
	return err
}

func (r *run) places(ctx context.Context, d *draw) error {
	places, err := r.store.QueuePositions(ctx, r.waiters)
	for _, p := range places {
		err = first(err, p.Err)
	}
	return err
}

func (r *run) leave(ctx context.Context, d *draw) error { return r.store.Leave(ctx, r.waiters) }

func (r *run) pass(ctx context.Context, d *draw) error {
	out, err := r.store.Pass(ctx, []lease.Lease{r.named(d)})
	for _, p := range out {
		if err = first(err, p.Err); p.Err == nil && !p.To.IsZero() {
			r.larger("", p.Token)
		}
	}
	return err
}

func (r *run) handOver(ctx context.Context, d *draw) error {
	from := r.named(d)
	to := r.requests(d, from.Key)[0]
	out, err := r.rows.HandOver(ctx, []lease.HandOver{{From: from, To: to}})
	return r.granted(out, err)
}

func (r *run) renew(ctx context.Context, d *draw) error {
	l := r.named(d)
	l.Shared = d.next(4) == 3
	out, err := r.rows.Renew(ctx, []lease.RenewRequest{{Lease: l, TTL: ttl}})
	for _, o := range out {
		err = first(err, o.Err)
	}
	return err
}

func (r *run) downgrade(ctx context.Context, d *draw) error {
	out, err := r.store.Downgrade(ctx, []lease.RenewRequest{{Lease: r.named(d), TTL: ttl}})
	for _, o := range out {
		err = first(err, o.Err)
	}
	return err
}

func (r *run) release(ctx context.Context, d *draw) error {
	l := r.named(d)
	l.Shared = d.next(4) == 3
	out, err := r.rows.Release(ctx, []lease.Lease{l})
	for _, o := range out {
		err = first(err, o.Err)
	}
	return err
}

func (r *run) raise(ctx context.Context, d *draw) error {
	l := r.named(d)
	out, err := r.store.Raise(ctx, []lease.RaiseRequest{{Lease: l, To: l.Token + 5}})
	for _, o := range out {
		if err = first(err, o.Err); o.Err == nil && !o.Gone {
			r.shown[l.Key] = l.Token + 5
		}
	}
	return err
}

func (r *run) inspect(ctx context.Context, d *draw) error {
	f := lease.Filter{Held: d.next(2) == 1, Limit: d.next(3)}
	if d.next(2) == 1 {
		f.Keys = []string{"k", "s/000"}
	}
	_, err := r.rows.Inspect(ctx, f)
	return err
}

func (r *run) force(ctx context.Context, d *draw) error {
	req := lease.ForceRequest{Key: d.key(), By: "me", Reason: "why", ID: lease.NewOwner()}
	_, err := r.store.ForceRelease(ctx, req)
	return err
}

func (r *run) forced(ctx context.Context, d *draw) error {
	_, err := r.store.ForceReleases(ctx, lease.ForcedFilter{Limit: 10})
	return err
}

func (r *run) trace(ctx context.Context, d *draw) error {
	_, err := r.store.ReadTrace(ctx, lease.TraceFilter{Limit: 10})
	return err
}

func (r *run) graph(ctx context.Context, d *draw) error {
	c := lease.Caller{ID: lease.Owner{3}, Holds: []lease.Lease{r.named(d)}, Wants: []string{d.key()}}
	err := r.rows.Record(ctx, lease.Party{}, []lease.Caller{c}, ttl)
	_, also := r.rows.Edges(ctx, lease.Party{}, []lease.Owner{c.ID}, 10)
	return first(err, also)
}

func (r *run) sweep(ctx context.Context, d *draw) error {
	_, err := r.rows.Sweep(ctx, lease.SweepOptions{Retention: time.Nanosecond, Batch: 10})
	return err
}

func (r *run) waiting(ctx context.Context, d *draw) error {
	_, err := r.store.Waiting(ctx, []string{"k", "k2"})
	_, also := r.store.Awaited(ctx, lease.Owner{9}, []string{"k"})
	return first(err, also, r.store.Intend(ctx, lease.Owner{9}, []string{"k"}, ttl))
}

func (r *run) move(ctx context.Context, d *draw) error {
	l := r.named(d)
	_, _, err := r.store.Depart(ctx, l, 1)
	_, also := r.store.Return(ctx, l.Key, 1, lease.Epoch(l.Token)+1)
	return first(err, also)
}

// named is a lease that was granted, or that the rows name.
func (r *run) named(d *draw) lease.Lease {
	if n := len(r.held); n > 0 && d.next(2) == 0 {
		return r.held[n-1]
	}
	return lease.Lease{Key: d.key(), Owner: lease.Owner{2}, Token: 7}
}

func (r *run) requests(d *draw, keys ...string) (out []lease.AcquireRequest) {
	slices.Sort(keys)
	for _, k := range keys {
		o := lease.NewOwner()
		if d.next(4) == 3 {
			o = lease.Owner{2}
		}
		out = append(out, lease.AcquireRequest{Key: k, Owner: o, TTL: ttl, Note: "me\tnote"})
	}
	r.asked = out
	return out
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
