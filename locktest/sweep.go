package locktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var sweepProperties = []property{
	{"a sweep leaves held rows", sweepLeavesHeld},
	{"a sweep removes dead rows batch after batch and counts them", sweepCounts},
	{"a sweep leaves rows that died within the retention", sweepRetention},
	{"a sweep stops when its context ends and says how far it came", sweepStops},
}

func (r *rig) canSweep() bool { return reaches[lease.Sweeper](r.here) }

func (r *rig) sweeper() lease.Sweeper { return able[lease.Sweeper](r, r.here) }

func (r *rig) sweep(opts lease.SweepOptions) int64 {
	r.Helper()
	n, err := r.sweeper().Sweep(r.ctx, opts)
	if err != nil {
		r.Fatalf("sweep %+v: %v", opts, err)
	}
	return n
}

// sweepAll sweeps until no dead row is left. A row that died in this very tick of the store's clock
// may need a second sweep.
func (r *rig) sweepAll() (removed int64) {
	r.Helper()
	r.eventually("a sweep of every dead row", func() bool {
		removed += r.sweep(lease.SweepOptions{Batch: 100})
		return r.dead() == 0
	})
	return removed
}

// dead counts the rows that are not held, of the first 1000.
func (r *rig) dead() (n int) {
	r.Helper()
	for _, row := range r.list(lease.Filter{}) {
		if !row.Held {
			n++
		}
	}
	return n
}

func sweepLeavesHeld(r *rig) {
	r.sweeper()
	held := r.take("held")
	r.expire(r.take("expired").Key)
	r.wantRelease(r.take("released"), false)
	r.sweepAll()
	for _, key := range []string{"expired", "released"} {
		if row, ok := r.row(key); ok {
			r.Errorf("a sweep left %+v", row)
		}
	}
	if row, _ := r.row("held"); row.Lease != held || !row.Held {
		r.Errorf("after a sweep the held row is %+v, want %+v", row, held)
	}
	r.wantHeld(held)
}

func sweepCounts(r *rig) {
	r.sweeper()
	for i := range 11 {
		l := r.take(fmt.Sprint("k", i))
		if i%2 == 0 {
			r.expire(l.Key)
		} else {
			r.wantRelease(l, false)
		}
	}
	dead, removed := r.dead(), int64(0)
	r.eventually("a sweep of every dead row", func() bool {
		removed += r.sweep(lease.SweepOptions{Batch: 2})
		return r.dead() == 0
	})
	if removed != int64(dead) {
		r.Errorf("sweeps of %d dead rows say they removed %d", dead, removed)
	}
}

// sweepRetention makes one row dead for longer than another and puts the retention in between. That
// holds only while the second row's death is younger than the retention at the end of the sweep, so
// that a slow round is repeated.
func sweepRetention(r *rig) {
	held := r.take("held")
	if _, err := r.sweeper().Sweep(r.ctx, lease.SweepOptions{Retention: -time.Hour}); !errors.Is(err, lease.ErrConfig) {
		r.Errorf("a sweep with a negative retention: %v, want %v", err, lease.ErrConfig)
	}
	r.wantHeld(held)
	for age, round := 50*time.Millisecond, 0; ; age, round = 2*age, round+1 {
		old, young := fmt.Sprint("old", round), fmt.Sprint("young", round)
		if r.sweepBetween(old, young, age) {
			return
		}
	}
}

func (r *rig) sweepBetween(old, young string, age time.Duration) (timely bool) {
	l := r.take(young)
	r.expire(r.take(old).Key)
	var retention time.Duration
	r.eventually("a row that has been dead for a while", func() bool {
		row, _ := r.row(old)
		retention = -row.Remaining
		return retention >= age
	})
	start := time.Now()
	r.wantRelease(l, false)
	r.sweep(lease.SweepOptions{Retention: retention, Batch: 100})
	if time.Since(start)+tolerance/2 > retention {
		return false
	}
	if row, ok := r.row(old); ok {
		r.Errorf("a sweep with retention %v left %+v", retention, row)
	}
	if row, ok := r.row(young); !ok || row.Token != l.Token {
		r.Errorf("a sweep with retention %v removed a row that had died within it", retention)
	}
	return true
}

// sweepStops gives the sweep a pause that never ends. A sweep that is stopped while its first batch
// is answered cannot count that batch, and a store of several members may count a row that one of
// them still has. So the test sweeps again if they differ.
func sweepStops(r *rig) {
	const tries = 4
	for try := 1; ; try++ {
		said, gone := r.stopSweep()
		switch {
		case said == gone:
			return
		case try == tries || gone-said > stopBatch:
			r.Fatalf("the sweep says it removed %d rows, but %d are gone", said, gone)
		}
	}
}

const stopBatch = 2

// stopSweep stops a sweep after its first batch. It returns how many rows the sweep reports, and
// how many are gone.
func (r *rig) stopSweep() (said, gone int64) {
	s := r.sweeper()
	for i := range 6 {
		r.expire(r.take(fmt.Sprint("k", i)).Key)
	}
	r.eventually("rows that are surely dead", func() bool {
		row, _ := r.row("k5")
		return row.Remaining < -2*time.Millisecond
	})
	before := r.dead()
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	removed := make(chan int64, 1)
	go func() {
		n, _ := s.Sweep(ctx, lease.SweepOptions{Batch: stopBatch, Pause: time.Hour})
		removed <- n
	}()
	r.eventually("a first batch to be removed", func() bool { return r.dead() < before })
	cancel()
	select {
	case said = <-removed:
	case <-r.ctx.Done():
		r.Fatal("the sweep goes on after its context has ended")
	}
	return said, int64(before - r.dead())
}
