package paxosbridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

// hops is how often a request follows its key. A key that moves faster than that is not to be had for the moment.
const hops = 8

// Acquire asks each key's home. A request that comes to the wrong one is refused there, and follows the key; on its way it
// finishes a move that it finds half done.
func (b *Bridge) Acquire(ctx context.Context, reqs []lease.AcquireRequest) (answers []lease.Acquired, err error) {
	defer func() { b.unheard.note(answers, err) }()
	b.warm(reqs)
	if b.routes.n.Load() == 0 {
		answers, err = itemized(b.table.Acquire(ctx, reqs))
	} else {
		answers, err = b.askBoth(ctx, reqs)
	}
	if err != nil || !slices.ContainsFunc(answers, strayed) {
		return answers, err
	}
	return b.follow(ctx, reqs, answers)
}

// itemized undoes what a store may do with a batch of one, whose error it returns as the call's.
func itemized(answers []lease.Acquired, err error) ([]lease.Acquired, error) {
	if len(answers) <= 1 && err != nil && strayed(lease.Acquired{Err: err}) {
		return []lease.Acquired{{Err: err}}, nil
	}
	return answers, err
}

// strayed says that the answer is not one: the key has another home, or its record is of another epoch.
func strayed(a lease.Acquired) bool {
	return a.Err != nil && (errors.Is(a.Err, lease.ErrMoved) || errors.Is(a.Err, ErrRecord))
}

// follow asks again for what was asked for in the wrong place.
func (b *Bridge) follow(ctx context.Context, reqs []lease.AcquireRequest, answers []lease.Acquired) ([]lease.Acquired, error) {
	var left []int
	for i, a := range answers {
		if strayed(a) {
			left = append(left, i)
		}
	}
	for hop := 1; len(left) > 0 && hop < hops; hop++ {
		left = b.sendOn(ctx, reqs, answers, left)
		got, err := b.askBoth(ctx, pick(reqs, left))
		if err != nil && len(left) == len(answers) {
			return nil, err
		}
		for n, i := range left {
			if err != nil {
				answers[i] = lease.Acquired{Err: err} // others have their answer
			} else {
				answers[i] = got[n]
			}
		}
		left = slices.DeleteFunc(left, func(i int) bool { return !strayed(answers[i]) })
	}
	for _, i := range left {
		answers[i] = lease.Acquired{Err: fmt.Errorf("%w: %q: its home keeps changing: %w", lease.ErrBusy, reqs[i].Key, answers[i].Err)}
	}
	return answers, nil
}

// sendOn finds out where the requests are to go that were refused. It returns those that are still to be asked.
func (b *Bridge) sendOn(ctx context.Context, reqs []lease.AcquireRequest, answers []lease.Acquired, left []int) []int {
	return slices.DeleteFunc(left, func(i int) bool {
		row, err := b.settle(ctx, reqs[i].Key, answers[i].Err)
		switch {
		case err != nil:
			answers[i] = lease.Acquired{Err: err}
			return true
		case row.Home == returning:
			answers[i] = lease.Acquired{Holder: lease.Holder{Note: "taken back by force", Remaining: b.untilBack(row)}}
			return true
		}
		return false
	})
}

// askBoth asks the table for what is there as far as is known, and the cluster for the rest.
func (b *Bridge) askBoth(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	reqs = slices.Clone(reqs) // each names the epoch that its key is believed to be in
	for i := range reqs {
		reqs[i].Epoch = b.routes.epoch(reqs[i].Key)
	}
	return each(ctx, reqs, func(q lease.AcquireRequest) bool { return q.Epoch != 0 },
		func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			return itemized(b.table.Acquire(ctx, reqs))
		}, b.acquireAway, refusal)
}

// acquireAway asks the cluster, but not for what was just read to be elsewhere.
func (b *Bridge) acquireAway(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	stayOf := func(q lease.AcquireRequest) stay { return stay{q.Key, q.TTL} }
	doubts := b.doubts(ctx, mapped(reqs, stayOf))
	return each(ctx, reqs, func(q lease.AcquireRequest) bool { return doubts[stayOf(q)] != nil || b.routes.epoch(q.Key) != q.Epoch },
		func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := itemized(b.cluster.Acquire(ctx, reqs))
			b.failed(reqs, answers, err)
			return answers, err
		},
		func(_ context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			out := mapped(reqs, func(q lease.AcquireRequest) lease.Acquired {
				return lease.Acquired{Err: cmp.Or(doubts[stayOf(q)], lease.ErrMoved)}
			})
			if len(out) == 1 && doubts[stayOf(reqs[0])] != nil {
				return nil, out[0].Err
			}
			return out, nil
		}, refusal)
}

func mapped[Q, A any](items []Q, f func(Q) A) []A {
	out := make([]A, len(items))
	for i, q := range items {
		out[i] = f(q)
	}
	return out
}

func refusal(err error) lease.Acquired { return lease.Acquired{Err: err} }

func pick[T any](all []T, places []int) []T {
	out := make([]T, len(places))
	for n, i := range places {
		out[n] = all[i]
	}
	return out
}

// sampled is of how many events one is counted, for all of them: what is hot has so many that it makes no difference, and to count each
// would cost the keys that never move two hundredths of their time.
const sampled = 8

// warm counts the bids.
func (b *Bridge) warm(reqs []lease.AcquireRequest) {
	for i := range reqs {
		b.count(reqs[i].Key)
	}
}

func (b *Bridge) count(key string) {
	if rand.Uint32()%sampled == 0 {
		b.heat.note(time.Now(), key, sampled)
	}
}

// failed remembers for State how the cluster answered last.
func (b *Bridge) failed(reqs []lease.AcquireRequest, answers []lease.Acquired, err error) {
	for i := range reqs {
		b.routes.with(reqs[i].Key, func(r *route) {
			r.err = err
			if err == nil && i < len(answers) && unanswered(answers[i].Err) {
				r.err = answers[i].Err
			}
		})
	}
}

// unanswered says of an item's error that the cluster has not answered. Others are answers.
func unanswered(err error) bool {
	return errors.Is(err, lease.ErrUnknown) || errors.Is(err, lease.ErrBusy)
}

// AcquireAll asks the table. Keys that are locked together stay there together: pin them.
func (b *Bridge) AcquireAll(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	all, ok := seam.As[lease.AllAcquirer](b.table)
	if !ok {
		return nil, fmt.Errorf("%w: to acquire several keys at once", lease.ErrUnsupported)
	}
	b.warm(reqs)
	answers, err := all.AcquireAll(ctx, reqs)
	b.unheard.note(answers, err)
	if errors.Is(err, lease.ErrMoved) {
		err = fmt.Errorf("%w: keys that are locked together must all be in the table: have Config.Pin answer Never for them (%w)", lease.ErrUnsupported, err)
	}
	return answers, err
}
