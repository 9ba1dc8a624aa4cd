package paxosbridge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Renew asks the store that granted each lease: its token says which.
func (b *Bridge) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return each(ctx, reqs, func(r lease.RenewRequest) bool { return isAway(r.Token) },
		apart(reqs, b.table.Renew), apart(reqs, b.renewAway), unrenewed)
}

func unrenewed(err error) lease.Renewed { return lease.Renewed{Err: err} }

type renewal func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error)

// apart gives a store that is asked for a part of a batch only half of the time there is. The batch ends with the leases in it: if one
// store hangs until then, what the other has extended is heard of too late.
func apart(batch []lease.RenewRequest, renew renewal) renewal {
	return func(ctx context.Context, part []lease.RenewRequest) ([]lease.Renewed, error) {
		if end, ok := ctx.Deadline(); ok && len(part) < len(batch) {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
			defer cancel()
		}
		return renew(ctx, part)
	}
}

// renewAway renews what the cluster has granted. Clocks of two stores cannot be compared: only the table's is passed on.
func (b *Bridge) renewAway(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	stayOf := func(r lease.RenewRequest) stay { return stay{r.Key, r.TTL} }
	doubts := b.doubts(ctx, mapped(reqs, stayOf))
	return each(ctx, reqs, func(r lease.RenewRequest) bool { return doubts[stayOf(r)] != nil || b.isRecalled(r) },
		func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			answers, err := b.cluster.Renew(ctx, reqs)
			for i := range answers {
				answers[i].Clock = 0
			}
			return answers, err
		}, func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) { // lost, whatever the cluster may say
			out := mapped(reqs, func(r lease.RenewRequest) lease.Renewed { return lease.Renewed{Err: doubts[stayOf(r)]} })
			if len(out) == 1 {
				return out, out[0].Err
			}
			return out, nil
		}, unrenewed)
}

// isRecalled reports that the row was read to say that the key is not in the cluster any more in the lease's epoch.
func (b *Bridge) isRecalled(r lease.RenewRequest) bool {
	return b.cfg.Delegation > 0 && b.routes.epoch(r.Key) != lease.Epoch(r.Token)
}

// Release gives leases up where they were granted. Where the token is not known, it may have been granted in either.
func (b *Bridge) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	answers, err := each(ctx, leases, func(l lease.Lease) bool { return isAway(l.Token) }, b.releaseAt(b.table), b.releaseAt(b.cluster), loss)
	for i := range answers {
		if l := leases[i]; l.Token == 0 && answers[i].Err == nil && answers[i].Gone && b.routes.epoch(l.Key) != 0 {
			answers[i] = one(b.cluster.Release(ctx, []lease.Lease{l}))
		}
	}
	return answers, err
}

func one(answers []lease.Released, err error) lease.Released {
	if err == nil && len(answers) == 1 {
		return answers[0]
	}
	return lease.Released{Err: errors.Join(lease.ErrUnknown, err)}
}

// side is one of the two stores, as far as leases are given up there.
type side interface {
	lease.Store
	lease.Passer
}

// loss is a release whose outcome is not known.
func loss(err error) lease.Released { return lease.Released{Err: err} }

// releaseAt hands what a mover waits for to the mover, and releases the rest.
func (b *Bridge) releaseAt(at side) func(context.Context, []lease.Lease) ([]lease.Released, error) {
	return func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
		if !b.wants.any() {
			return at.Release(ctx, leases)
		}
		return each(ctx, leases, func(l lease.Lease) bool { return b.wants.of(l) != nil }, at.Release,
			func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
				out := make([]lease.Released, len(leases))
				for i, l := range leases {
					gone, err := b.giveToMover(ctx, at, l)
					out[i] = lease.Released{Gone: gone, Err: err}
				}
				return out, nil
			}, loss)
	}
}

// HandOver hands leases on where they were granted; but a mover goes before everybody else, so that a key that is passed from hand to
// hand can be moved at all.
func (b *Bridge) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	for i := range items {
		b.count(items[i].From.Key)
	}
	answers, err := each(ctx, items, func(h lease.HandOver) bool { return isAway(h.From.Token) }, b.handOverAt(b.table), b.handOverAt(b.cluster), refusal)
	b.unheard.note(answers, err)
	return answers, err
}

func (b *Bridge) handOverAt(at side) func(context.Context, []lease.HandOver) ([]lease.Acquired, error) {
	return func(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
		if !b.wants.any() {
			return at.HandOver(ctx, items)
		}
		return each(ctx, items, func(h lease.HandOver) bool { return b.wants.of(h.From) != nil }, at.HandOver,
			func(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
				out := make([]lease.Acquired, len(items))
				for i, h := range items {
					switch gone, err := b.giveToMover(ctx, at, h.From); {
					case err != nil:
						out[i].Err = err
					case !gone:
						out[i].Err = fmt.Errorf("%w: %q is about to move", lease.ErrMoved, h.From.Key)
					}
				}
				return out, nil
			}, refusal)
	}
}

// each has two stores answer their part of a batch, both at once, so that one that hangs does not use up the time of the other, and puts
// the answers in order. An error of one of them is its items', if the other has answered.
func each[Q, A any](ctx context.Context, items []Q, second func(Q) bool, a, b func(context.Context, []Q) ([]A, error), broken func(error) A) ([]A, error) {
	var places [2][]int
	for i, q := range items {
		n := 0
		if second(q) {
			n = 1
		}
		places[n] = append(places[n], i)
	}
	switch len(items) {
	case 0:
		return []A{}, nil
	case len(places[0]):
		return answered(ctx, items, a)
	case len(places[1]):
		return answered(ctx, items, b)
	}
	out := make([]A, len(items))
	var wg sync.WaitGroup
	for n, f := range []func(context.Context, []Q) ([]A, error){a, b} {
		wg.Go(func() {
			got, err := answered(ctx, pick(items, places[n]), f)
			for m, i := range places[n] {
				if err != nil {
					out[i] = broken(err)
				} else {
					out[i] = got[m]
				}
			}
		})
	}
	wg.Wait()
	return out, nil
}

// answered sees that there are as many answers as items.
func answered[Q, A any](ctx context.Context, items []Q, f func(context.Context, []Q) ([]A, error)) ([]A, error) {
	got, err := f(ctx, items)
	if err == nil && len(got) != len(items) {
		err = fmt.Errorf("%w: %w: %d answers to %d items", lease.ErrUnknown, lease.ErrCorrupt, len(got), len(items))
	}
	if err != nil {
		return nil, err
	}
	return got, nil
}
