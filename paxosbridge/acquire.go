package paxosbridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// hops is how often a request follows its key. A key that moves more often than that is busy.
const hops = 8

// Acquire asks each key's placement. The wrong placement refuses a request. Then the request
// follows its key, and completes a move that it finds half done.
func (b *Bridge) Acquire(
	ctx context.Context, reqs []lease.AcquireRequest,
) (answers []lease.Acquired, err error) {
	for i := range reqs {
		b.count(reqs[i].Key)
	}
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

// itemized makes the error of a batch of one its item's. A store returns that error as the call's.
func itemized(answers []lease.Acquired, err error) ([]lease.Acquired, error) {
	if len(answers) <= 1 && err != nil && strayed(acquireError(err)) {
		return []lease.Acquired{acquireError(err)}, nil
	}
	return answers, err
}

// strayed reports whether a request came to the wrong placement, or to a record of another epoch.
func strayed(a lease.Acquired) bool {
	return a.Err != nil && (errors.Is(a.Err, lease.ErrMoved) || errors.Is(a.Err, ErrRecord))
}

// follow sends the requests again that came to the wrong placement.
func (b *Bridge) follow(
	ctx context.Context, reqs []lease.AcquireRequest, answers []lease.Acquired,
) ([]lease.Acquired, error) {
	var left []int
	for i, a := range answers {
		if strayed(a) {
			left = append(left, i)
		}
	}
	for hop := 1; len(left) > 0 && hop < hops; hop++ {
		left = b.reroute(ctx, reqs, answers, left)
		got, err := b.askBoth(ctx, adapter.Pick(reqs, left))
		for n, a := range adapter.Each("bridge", got, err, len(left), acquireError) {
			answers[left[n]] = again(answers[left[n]], a)
		}
		left = slices.DeleteFunc(left, func(i int) bool { return !strayed(answers[i]) })
	}
	for _, i := range left {
		answers[i].Err = fmt.Errorf("%w: the placement of %q keeps changing: %w",
			lease.ErrBusy, reqs[i].Key, answers[i].Err)
	}
	return answers, nil
}

// again is the answer to a request that was sent again. A copy of the first that may still be
// carried out is told with it: its caller alone releases what that copy is granted.
func again(before, after lease.Acquired) lease.Acquired {
	doubt := before.Unknown || errors.Is(before.Err, lease.ErrUnknown)
	if after.Unknown = after.Unknown || doubt; after.Err != nil && (doubt || before.Granted) {
		after.Err = oneline.Join(lease.ErrUnknown, after.Err)
	}
	return after
}

// reroute finds out where the refused requests must go, and returns those that must be sent again.
func (b *Bridge) reroute(
	ctx context.Context, reqs []lease.AcquireRequest, answers []lease.Acquired, left []int,
) []int {
	return slices.DeleteFunc(left, func(i int) bool {
		row, err := b.resolve(ctx, reqs[i].Key, answers[i].Err)
		switch {
		case err != nil:
			answers[i] = again(answers[i], acquireError(err))
			return true
		case row.Placement == returning:
			answers[i] = again(answers[i], lease.Acquired{
				Holder: lease.Holder{Note: "taken back by force", Remaining: b.untilBack(row)},
			})
			return true
		}
		return false
	})
}

// askBoth asks the table for the keys that are believed to be there, and the cluster for the
// others.
func (b *Bridge) askBoth(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	reqs = slices.Clone(reqs) // each names the epoch that its key is believed to be in
	for i := range reqs {
		reqs[i].Epoch = b.routes.epoch(reqs[i].Key)
	}
	return split[lease.AcquireRequest, lease.Acquired]{
		func(q lease.AcquireRequest) bool { return q.Epoch != 0 },
		func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			return itemized(b.table.Acquire(ctx, reqs))
		},
		b.acquireAway,
		acquireError,
	}.run(ctx, reqs)
}

// acquireAway asks the cluster, except for a key that a read has just found elsewhere.
func (b *Bridge) acquireAway(
	ctx context.Context, reqs []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	refusal := refusals(
		ctx, b.routes, reqs, func(q lease.AcquireRequest) hold { return hold{q.Key, q.TTL} },
	)
	return split[lease.AcquireRequest, lease.Acquired]{
		func(q lease.AcquireRequest) bool {
			return refusal(q) != nil || b.routes.epoch(q.Key) != q.Epoch
		},
		func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := itemized(b.cluster.Acquire(ctx, reqs))
			b.noteFailures(reqs, answers, err)
			return answers, err
		},
		itemByItem(func(q lease.AcquireRequest) (lease.Acquired, error) {
			return acquireError(cmp.Or(refusal(q), lease.ErrMoved)), refusal(q)
		}),
		acquireError,
	}.run(ctx, reqs)
}

// sampled is the number of events for each that is counted. A hot key has so many that the rate is
// the same, and counting each event would cost keys that never move two percent of their time.
const sampled = 8

// count counts a bid, a poll of a waiter or a hand-over.
func (b *Bridge) count(key string) {
	if rand.Uint32()%sampled == 0 {
		b.heat.Note(time.Now(), key, sampled)
	}
}

// noteFailures remembers for State whether the cluster answered.
func (b *Bridge) noteFailures(reqs []lease.AcquireRequest, answers []lease.Acquired, err error) {
	for i := range reqs {
		b.routes.with(reqs[i].Key, func(r *route) {
			r.err = err
			if err == nil && i < len(answers) && oneline.Is(answers[i].Err, lease.ErrUnknown, lease.ErrBusy) {
				r.err = answers[i].Err
			}
		})
	}
}

// AcquireAll asks the table. Keys that are locked together must stay there: pin them.
func (b *Bridge) AcquireAll(
	ctx context.Context, reqs []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	all, err := ability[lease.AllAcquirer](b.table, "acquire several keys at once")
	if err != nil {
		return nil, err
	}
	for i := range reqs {
		b.count(reqs[i].Key)
	}
	answers, err := all.AcquireAll(ctx, reqs)
	if errors.Is(err, lease.ErrMoved) {
		err = fmt.Errorf("%w: keys that are locked together must all be in the table: "+
			"have Config.Pin return Never for them (%w)", lease.ErrUnsupported, err)
	}
	return answers, err
}
