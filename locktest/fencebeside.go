package locktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// fenceBesideProperties are about calls beside an open fence.
var fenceBesideProperties = []property{
	{"two transactions of one holder take turns", fencesTakeTurns},
	{"a fence holds up no renewal and no acquire of another key", fenceBeside},
	{"a sweep leaves a row that a fence has", sweepUnderFence},
	{"a fence opened while others take the key lets nobody in", fenceRace},
}

func (r *rig) parallelTx() {
	r.Helper()
	if r.h.SerialTx {
		r.Skip("Harness.SerialTx: one transaction at a time")
	}
}

func fenceBeside(r *rig) {
	r.fencer()
	r.parallelTx()
	leases, _ := r.takeAll("a", "k", "z")
	tx := r.begin()
	r.fence(tx, leases[1])
	reqs := make([]lease.RenewRequest, len(leases))
	for i, l := range leases {
		reqs[i] = lease.RenewRequest{Lease: l, TTL: ttl}
	}
	answers, err := r.here.Renew(r.ctx, reqs)
	if err != nil || len(answers) != len(leases) {
		r.Fatalf("renew: %d answers to %d requests, %v", len(answers), len(leases), err)
	}
	if answers[0].Outcome != lease.Extended || answers[1].Outcome == lease.Lost || answers[2].Outcome != lease.Extended {
		r.Errorf("renewals with a fence on the second: %+v", answers)
	}
	start := time.Now()
	for i := range 10 {
		l := r.take(fmt.Sprint("new", i))
		r.wantRelease(l, false)
	}
	if took := time.Since(start); took > prompt {
		r.Errorf("acquires beside a fence took %v", took)
	}
	r.commit(tx)
	r.wantHeld(leases[1])
}

// sweepUnderFence: a row that is swept away could be created anew, which is a way of taking it.
func sweepUnderFence(r *rig) {
	r.fencer()
	s := r.sweeper()
	l := r.take("k")
	r.expire("k")
	r.eventually("a row that is surely dead", func() bool {
		row, _ := r.row("k")
		return row.Remaining < -2*time.Millisecond
	})
	tx := r.begin()
	r.fence(tx, l)
	ctx, cancel := context.WithTimeout(r.ctx, min(2*time.Second, r.h.limit()/3))
	defer cancel()
	_, _ = s.Sweep(ctx, lease.SweepOptions{Batch: 10}) // it may fail, wait, or pass the row by
	q := request("k", lease.NewOwner())
	r.wantNotGranted(q)
	r.fence(tx, l)
	r.commit(tx)
	r.takeSoon(q, l)
}

// fenceRace fences an expired lease while another owner tries to take it. The first excludes the
// other.
func fenceRace(r *rig) {
	r.fencer()
	r.parallelTx()
	for round := range r.h.scale(16) {
		l := r.take(fmt.Sprint("k", round))
		r.expire(l.Key)
		tx := r.begin()
		q := request(l.Key, lease.NewOwner())
		fenced, granted := r.fenceAgainst(tx, l, q, round%4)
		if fenced == nil && granted {
			r.Fatalf("round %d: the key was granted while a fence that had passed was open", round)
		}
		if fenced != nil && !errors.Is(fenced, lease.ErrFenced) {
			r.Errorf("round %d: fence %v, want nil or lease.ErrFenced", round, fenced)
		}
		r.rollback(tx)
		r.takeSoon(q, l)
	}
}

// fenceAgainst asks for the key while the fence runs, after a head start of some other calls.
func (r *rig) fenceAgainst(tx Tx, l lease.Lease, q lease.AcquireRequest, headStart int) (fenced error, granted bool) {
	ctx, cancel := context.WithTimeout(r.ctx, min(2*time.Second, r.h.limit()/3))
	defer cancel()
	f, sent, done := r.fencer(), make(chan struct{}), make(chan struct{})
	together(2, func(i int) {
		if i == 0 {
			close(sent)
			fenced = f.Fence(ctx, tx, l)
			close(done)
			return
		}
		<-sent
		for range headStart {
			_, _ = r.there().Inspect(ctx, lease.Filter{Keys: []string{l.Key}})
		}
		for asking := true; asking && !granted; {
			a, err := acquireOne(ctx, r.there(), q)
			granted = err == nil && a.Granted
			select {
			case <-done:
				asking = false
			default:
			}
		}
	})
	return fenced, granted
}
