package locktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var cancelProperties = []property{
	{"a call whose context has ended returns an error at once and holds nothing", cancelledBefore},
	{"an acquire that is cut short holds nothing for ever", cutShort},
	{"a release that is cut short can be repeated", releaseCutShort},
}

// prompt is how long a call may take to notice that its context has ended.
const prompt = 5 * time.Second

func cancelledBefore(r *rig) {
	held := r.take("held")
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	start := time.Now()
	q := request("k", lease.NewOwner())
	_, err := acquireOne(ctx, r.here, q)
	_, renewErr := renewOne(ctx, r.here, held)
	if _, err := r.here.Inspect(ctx, lease.Filter{}); err == nil {
		r.Error("inspect with a cancelled context returned no error")
	}
	if took := time.Since(start); took > prompt {
		r.Errorf("calls with a cancelled context took %v", took)
	}
	if err == nil || renewErr == nil {
		r.Errorf("calls with a cancelled context returned %v and %v", err, renewErr)
	}
	r.wantAcquirable(q, err)
	r.wantHeld(held)
}

// wantAcquirable does what a client does after an acquire that ended with err: it cleans up if the
// outcome is unknown, and does nothing otherwise. Either way another owner then gets the key, long
// before the lease would have ended.
func (r *rig) wantAcquirable(q lease.AcquireRequest, err error) {
	r.Helper()
	if !errors.Is(err, lease.ErrUnknown) {
		r.take(q.Key)
		return
	}
	other := lease.NewOwner()
	r.eventually("the key of an acquire with unknown outcome", func() bool {
		if _, err := releaseOne(r.ctx, r.here, lease.Lease{Key: q.Key, Owner: q.Owner}); err != nil {
			return false
		}
		a, err := acquireOne(r.ctx, r.here, request(q.Key, other))
		return err == nil && a.Granted
	})
}

// deadline lets contexts end at every stage of a call.
func deadline(i int) time.Duration { return time.Duration(i) * 40 * time.Microsecond }

func cutShort(r *rig) {
	n := r.h.most(r.h.scale(64))
	reqs, answers, errs := make([]lease.AcquireRequest, n), make([]lease.Acquired, n), make([]error, n)
	together(n, func(i int) {
		ctx, cancel := context.WithTimeout(r.ctx, deadline(i))
		defer cancel()
		reqs[i] = request(fmt.Sprint("k", i), lease.NewOwner())
		answers[i], errs[i] = acquireOne(ctx, r.here, reqs[i])
	})
	for i, q := range reqs {
		switch {
		case errs[i] != nil:
			r.wantAcquirable(q, errs[i])
		case answers[i].Granted:
			r.wantHeld(lease.Lease{Key: q.Key, Owner: q.Owner, Token: answers[i].Token})
		default:
			r.Errorf("%q: refused, though it is free", q.Key)
		}
	}
}

func releaseCutShort(r *rig) {
	n := r.h.most(r.h.scale(64))
	leases := make([]lease.Lease, n)
	for i := range leases {
		leases[i] = r.take(fmt.Sprint("k", i))
	}
	errs := make([]error, n)
	together(n, func(i int) {
		ctx, cancel := context.WithTimeout(r.ctx, deadline(i))
		defer cancel()
		_, errs[i] = releaseOne(ctx, r.here, leases[i])
	})
	for i, l := range leases {
		if errs[i] != nil {
			r.eventually("a release that was cut short", func() bool {
				_, err := releaseOne(r.ctx, r.here, l)
				return err == nil
			})
		}
		r.takeAfter(l)
	}
}
