package locktest

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/rowlockdb/rowlock/lease"
)

// Of a store that is a lease.SlotPasser.
var slotPassProperties = []property{
	{"a slot is handed over with the next token and in the same generation", slotPassed},
	{"slots that are handed over together are answered each for itself", slotPassedEach},
	{"no slot is handed over once its limit was resized", slotPassResized},
	{"a slot that is gone is not handed over", slotPassGone},
	{"a repeated hand-over of a slot returns the lease as it is", slotPassAgain},
	{"no slot is handed over that a resize before has ruled out, however many are at once", slotPassRace},
}

func (r *rig) slotPasser() lease.SlotPasser { return able[lease.SlotPasser](r, r.here) }

// granted takes n slots, and returns them with the generation of each.
func (r *rig) granted(l lease.Limit, n int) (got []lease.SlotHandOver) {
	r.Helper()
	reqs := slots(l)
	answers, err := r.slotPasser().AcquireWithin(r.ctx, l, reqs, n)
	if err != nil {
		r.Fatalf("%d slots of %+v: %v", n, l, err)
	}
	for i, a := range answers {
		if !a.Granted {
			continue
		}
		if a.Generation < 1 {
			r.Fatalf("a slot was granted in the generation %d", a.Generation)
		}
		held := lease.Lease{Key: reqs[i].Key, Owner: reqs[i].Owner, Token: a.Token}
		h := lease.HandOver{From: held, To: request(held.Key, lease.NewOwner())}
		got = append(got, lease.SlotHandOver{HandOver: h, Generation: a.Generation})
	}
	if len(got) != n {
		r.Fatalf("%d of %d slots were granted", len(got), n)
	}
	return got
}

// passOn hands a slot over and returns what is the next holder's.
func (r *rig) passOn(l lease.Limit, h lease.SlotHandOver) (next lease.SlotHandOver, ok bool) {
	r.Helper()
	var a lease.Acquired
	err := r.patient(func() (err error) {
		a, err = sole(r.slotPasser().PassSlots(r.ctx, l.Name, []lease.SlotHandOver{h}))
		return cmp.Or(err, a.Err)
	})
	if err != nil {
		r.Errorf("hand over %q: %v", h.From.Key, err)
	}
	next.From = lease.Lease{Key: h.To.Key, Owner: h.To.Owner, Token: a.Token}
	next.To, next.Generation = request(h.To.Key, lease.NewOwner()), a.Generation
	return next, a.Granted
}

func (r *rig) wantSlotPassed(l lease.Limit, h lease.SlotHandOver) lease.SlotHandOver {
	r.Helper()
	next, ok := r.passOn(l, h)
	if !ok {
		r.Fatalf("%q with token %d was not handed over", h.From.Key, h.From.Token)
	}
	return next
}

// wantKept hands over what must stay with its holder.
func (r *rig) wantSlotKept(l lease.Limit, h lease.SlotHandOver) {
	r.Helper()
	before, _ := r.row(h.From.Key)
	if _, ok := r.passOn(l, h); ok {
		r.Errorf("%q with token %d was handed over", h.From.Key, h.From.Token)
	}
	if now, _ := r.row(h.From.Key); now.Lease != before.Lease {
		r.Errorf("a hand-over that was refused has made %+v of %+v", now.Lease, before.Lease)
	}
}

func slotPassed(r *rig) {
	l := r.limit(2)
	first := r.granted(l, 1)[0]
	next := first
	for range 3 {
		last := next
		next = r.wantSlotPassed(l, last)
		row, _ := r.row(next.From.Key)
		if next.From.Token != last.From.Token+1 || row.Lease != next.From || next.Generation != first.Generation {
			r.Errorf("%+v became %+v, and its row %+v", last, next, row.Lease)
		}
	}
	r.granted(l, 1)
	r.wantNoneWithin(l, 1)
	r.wantRelease(first.From, true)
	r.wantRelease(next.From, false)
}

func slotPassedEach(r *rig) {
	l := r.limit(3)
	all := r.granted(l, 3)
	r.wantRelease(all[1].From, false)
	answers, err := r.slotPasser().PassSlots(r.ctx, l.Name, all)
	if err != nil || len(answers) != 3 {
		r.Fatalf("%+v, %v", answers, err)
	}
	for i, a := range answers {
		row, _ := r.row(all[i].From.Key)
		if a.Err != nil || a.Granted != (i != 1) || a.Granted != (row.Owner == all[i].To.Owner) {
			r.Errorf("slot %d, of which the second was released: %+v, and its row %+v", i, a, row)
		}
	}
}

func slotPassResized(r *rig) {
	for _, sizes := range [][]int{{2}, {5}, {2, 4}, {4}} {
		l := lease.Limit{Name: "limit", Slots: 4}
		if _, ok := r.row(l.Slot(0)); !ok {
			r.limit(4)
		} else {
			r.resize(4)
		}
		h := r.granted(l, 1)[0]
		h = r.wantSlotPassed(l, h)
		for _, n := range sizes {
			r.resize(n)
		}
		r.wantSlotKept(l, h)
		r.wantRelease(h.From, false)
	}
}

func slotPassGone(r *rig) {
	l := r.limit(2)
	h := r.granted(l, 1)[0]
	other := h
	other.From.Owner = lease.NewOwner()
	r.wantSlotKept(l, other)
	other = h
	other.From.Token++
	r.wantSlotKept(l, other)
	r.wantRelease(h.From, false)
	r.wantSlotKept(l, h)
}

func slotPassAgain(r *rig) {
	l := r.limit(2)
	h := r.granted(l, 1)[0]
	first, second := r.wantSlotPassed(l, h), r.wantSlotPassed(l, h)
	if first.From != second.From {
		r.Errorf("handed over as %+v, and again as %+v", first.From, second.From)
	}
}

// Each clerk hands one slot from owner to owner, while one makes the limit smaller. A hand-over
// that begins after the resize has ended must be refused.
func slotPassRace(r *rig) {
	const clerks = 4
	l := r.limit(clerks)
	for range r.h.scale(10) {
		all := r.granted(l, clerks)
		var resized atomic.Bool
		var begun sync.WaitGroup // or the resize may have ended before the first hand-over
		begun.Add(clerks)
		together(clerks+1, func(clerk int) {
			if clerk == clerks {
				begun.Wait()
				r.resize(1)
				resized.Store(true)
				return
			}
			first := sync.OnceFunc(begun.Done)
			defer first()
			all[clerk] = r.passUntilRefused(l, all[clerk], &resized, first)
		})
		for _, h := range all {
			r.wantRelease(h.From, false)
		}
		r.resize(clerks)
	}
}

// passUntilRefused returns what h has become. It calls passed after each hand-over.
func (r *rig) passUntilRefused(l lease.Limit, h lease.SlotHandOver, resized *atomic.Bool, passed func()) lease.SlotHandOver {
	for {
		late := resized.Load()
		next, ok := r.passOn(l, h)
		if !ok {
			return h
		}
		passed()
		h = next
		if late {
			r.Errorf("%q was handed over after the resize", h.From.Key)
			return h
		}
	}
}
