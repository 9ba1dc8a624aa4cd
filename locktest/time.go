package locktest

import (
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var timeProperties = []property{
	{"a lease keeps the fraction of its second", fractions},
	{"a renewal counts from now, not from the old end", renewFromNow},
	{"a lease ends by itself, and not before its time", endsByItself},
	{"the store's clock is told with the answers", clockIsTold},
}

// fractions: a lease of 1500 ms is neither 1 s nor 2 s, and one of 700 ms is not 0.
func fractions(r *rig) {
	for _, d := range []time.Duration{1500 * time.Millisecond, 700 * time.Millisecond, 2250 * time.Millisecond} {
		key := d.String()
		start := time.Now()
		l := r.takeFor(key, d)
		r.wantRemaining(key, start, d)
		start = time.Now()
		if got, err := sole(r.here.Renew(r.ctx, []lease.RenewRequest{{Lease: l, TTL: d}})); err != nil {
			r.Fatalf("renew %q: %v", key, err)
		} else if got.Outcome == lease.Extended { // it may be late on a busy machine
			r.wantRemaining(key, start, d)
		}
	}
}

// takeFor asks again if there is no answer while such a lease lasts, as a busy machine may have it.
func (r *rig) takeFor(key string, d time.Duration) lease.Lease {
	r.Helper()
	q := request(key, lease.NewOwner())
	q.TTL = d
	var a lease.Acquired
	r.eventually("an answer", func() bool {
		var err error
		if a, err = acquireOne(r.ctx, r.here, q); errors.Is(err, lease.ErrUnknown) {
			return false
		}
		if err != nil || !a.Granted {
			r.Fatalf("acquire %q for %v: %+v, %v", key, d, a, err)
		}
		return true
	})
	return lease.Lease{Key: key, Owner: q.Owner, Token: a.Token}
}

// wantRemaining checks what remains of a lease that was given d at some moment after start.
func (r *rig) wantRemaining(key string, start time.Time, d time.Duration) {
	r.Helper()
	row, ok := r.row(key)
	if low := d - time.Since(start) - tolerance; !ok || row.Remaining < low || row.Remaining > d+time.Millisecond {
		r.Errorf("%v remain of %v, want at least %v", row.Remaining, d, low)
	}
}

func renewFromNow(r *rig) {
	l := r.take("k")
	start := time.Now()
	r.wantRenew(l, lease.Extended)
	r.wantRemaining("k", start, ttl)
}

// endsByItself is the one property that waits for a lease: with Expire alone, a lease that never
// ends would pass.
func endsByItself(r *rig) {
	const d = 400 * time.Millisecond
	r.there()
	start := time.Now()
	l := r.takeFor("k", d)
	other := lease.NewOwner()
	var a lease.Acquired
	r.eventually("the end of a lease", func() bool {
		a = r.try(r.there(), "k", other)
		return a.Granted
	})
	if after := time.Since(start); after < d-tolerance {
		r.Errorf("a lease of %v was taken over after %v", d, after)
	}
	r.wantAbove(lease.Lease{Key: "k", Token: a.Token}, l)
	r.wantRenew(l, lease.Lost)
}

// clockIsTold compares how far the store's clock went between two renewals with how far ours did.
func clockIsTold(r *rig) {
	l := r.take("k")
	renew := func() (sent, answered time.Time, clock time.Duration) {
		sent = time.Now()
		got, err := renewOne(r.ctx, r.here, l)
		if err != nil {
			r.Fatalf("renew: %v", err)
		}
		return sent, time.Now(), got.Clock
	}
	sent, answered, first := renew()
	if first == 0 {
		return // a store that has no clock
	}
	r.eventually("the clock to be told after some time", func() bool {
		again, last, clock := renew()
		least, most := again.Sub(answered)-tolerance, last.Sub(sent)+tolerance
		if went := clock - first; went < least || went > most {
			r.Fatalf("the store's clock went on by %v (from %v to %v), ours by %v to %v", went, first, clock, least, most)
		}
		return again.Sub(answered) > 3*tolerance
	})
}
