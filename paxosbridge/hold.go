package paxosbridge

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Renew asks the store that granted each lease. The token says which store that is.
func (b *Bridge) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return split[lease.RenewRequest, lease.Renewed]{
		func(r lease.RenewRequest) bool { return isAway(r.Token) },
		halfTime(reqs, b.table.Renew), halfTime(reqs, b.renewAway),
		adapter.Unrenewed,
	}.run(ctx, reqs)
}

// halfTime gives a store that is asked for a part of a batch half of the time left. The batch ends
// with its leases: if one store hangs until then, the caller learns too late what the other has
// extended.
func halfTime(
	batch []lease.RenewRequest, renew call[lease.RenewRequest, lease.Renewed],
) call[lease.RenewRequest, lease.Renewed] {
	return func(ctx context.Context, part []lease.RenewRequest) ([]lease.Renewed, error) {
		if end, ok := ctx.Deadline(); ok && len(part) < len(batch) {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
			defer cancel()
		}
		return renew(ctx, part)
	}
}

// renewAway renews leases of the cluster. It passes on no clock, because those of two stores cannot
// be compared and the table's is the one passed on.
func (b *Bridge) renewAway(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	refusal := refusals(
		ctx, b.routes, reqs, func(r lease.RenewRequest) hold { return hold{r.Key, r.TTL} },
	)
	return split[lease.RenewRequest, lease.Renewed]{
		func(r lease.RenewRequest) bool { return refusal(r) != nil || b.isRecalled(r.Lease) },
		func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			answers, err := b.cluster.Renew(ctx, reqs)
			for i := range answers {
				answers[i].Clock = 0
			}
			return answers, err
		},
		itemByItem(func(r lease.RenewRequest) (lease.Renewed, error) {
			return adapter.Unrenewed(refusal(r)), refusal(r) // or lost, whatever the cluster would answer
		}),
		adapter.Unrenewed,
	}.run(ctx, reqs)
}

// isRecalled reports whether the row was read to say that the key has left the cluster since the
// lease's epoch.
func (b *Bridge) isRecalled(l lease.Lease) bool {
	return b.cfg.Delegation > 0 && b.routes.epoch(l.Key) != lease.Epoch(l.Token)
}

// Release releases each lease in the store that granted it. A lease without a token may be of
// either store.
func (b *Bridge) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	answers, err := split[lease.Lease, lease.Released]{
		func(l lease.Lease) bool { return isAway(l.Token) },
		b.releaseAt(b.table), b.releaseAt(b.cluster),
		adapter.Unreleased,
	}.run(ctx, leases)
	for i := range answers {
		l := leases[i]
		if l.Token == 0 && answers[i].Err == nil && answers[i].Gone && b.routes.epoch(l.Key) != 0 {
			answers[i] = releaseOne(ctx, b.cluster, l)
		}
		if isAway(l.Token) {
			answers[i].Looked = false // waiters in the cluster do not register: see Awaited
		}
	}
	return answers, err
}

// moversFirst is a call in which a key that a mover waits for is handed to the mover.
func moversFirst[Q, A any](
	p *pendingMoves, usual call[Q, A], leaseOf func(Q) lease.Lease,
	hand func(context.Context, Q) A, failed func(error) A,
) call[Q, A] {
	return func(ctx context.Context, items []Q) ([]A, error) {
		if !p.any() {
			return usual(ctx, items)
		}
		return split[Q, A]{
			func(q Q) bool { return p.of(leaseOf(q)) != nil },
			usual, itemByItem(func(q Q) (A, error) { return hand(ctx, q), nil }),
			failed,
		}.run(ctx, items)
	}
}

func (b *Bridge) releaseAt(at side) call[lease.Lease, lease.Released] {
	hand := func(ctx context.Context, l lease.Lease) lease.Released {
		return b.pending.handOver(ctx, at, l)
	}
	itself := func(l lease.Lease) lease.Lease { return l }
	return moversFirst(b.pending, at.Release, itself, hand, adapter.Unreleased)
}

// HandOver hands leases over in the store that granted them. A mover goes first, so that a key can
// move that is handed over again and again.
func (b *Bridge) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	for i := range items {
		b.count(items[i].From.Key)
	}
	return split[lease.HandOver, lease.Acquired]{
		func(h lease.HandOver) bool { return isAway(h.From.Token) },
		b.handOverAt(b.table), b.handOverAway,
		acquireError,
	}.run(ctx, items)
}

// handOverAway hands no lease over that the cluster must not grant: its holder releases it, and the
// next caller asks where the key is.
func (b *Bridge) handOverAway(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	refusal := refusals(
		ctx, b.routes, items, func(h lease.HandOver) hold { return hold{h.From.Key, h.To.TTL} },
	)
	return split[lease.HandOver, lease.Acquired]{
		func(h lease.HandOver) bool { return refusal(h) != nil || b.isRecalled(h.From) },
		b.handOverAt(b.cluster),
		itemByItem(func(lease.HandOver) (a lease.Acquired, err error) { return a, nil }),
		acquireError,
	}.run(ctx, items)
}

func (b *Bridge) handOverAt(at side) call[lease.HandOver, lease.Acquired] {
	hand := func(ctx context.Context, h lease.HandOver) lease.Acquired {
		r := b.pending.handOver(ctx, at, h.From)
		if r.Err == nil && !r.Gone {
			r.Err = fmt.Errorf("%w: %q is about to move", lease.ErrMoved, h.From.Key)
		}
		return acquireError(r.Err)
	}
	from := func(h lease.HandOver) lease.Lease { return h.From }
	return moversFirst(b.pending, at.HandOver, from, hand, acquireError)
}
