package table_test

import (
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/lease"
)

// slotsOf are requests for slots of a limit.
func slotsOf(l lease.Limit, numbers ...int) []lease.AcquireRequest {
	keys := make([]string, len(numbers))
	for i, n := range numbers {
		keys[i] = l.Slot(n)
	}
	return requests(keys...)
}

// takeSlots has another process take slots.
func (r *rig) takeSlots(t *testing.T, l lease.Limit, numbers ...int) {
	t.Helper()
	answers, err := r.clean.AcquireWithin(t.Context(), l, slotsOf(l, numbers...), len(numbers))
	if err != nil || !answers[0].Granted {
		t.Fatalf("slots %v of %+v: %+v, %v", numbers, l, answers, err)
	}
}

func (r *rig) resize(t *testing.T, l lease.Limit, slots int) lease.Limit {
	t.Helper()
	l.Slots = slots
	if err := r.clean.Resize(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return l
}

func (r *rig) heldSlots(t *testing.T) int {
	t.Helper()
	rows, err := r.clean.Inspect(t.Context(), lease.Filter{Prefix: "s/", Held: true})
	if err != nil {
		t.Fatal(err)
	}
	return len(rows)
}

// granting are the statements that grant slots.
func granting(inj faultdb.Injector) faultdb.Injector {
	return faultdb.Any(faultdb.OnMatch("rowlock apply-any-within", inj), faultdb.OnMatch("rowlock acquire-update", inj))
}

// whileGranting runs f when a request for a slot of 4, of which 2 and 3 are held, has counted and
// not yet granted.
func (r *rig) whileGranting(t *testing.T, f func(l lease.Limit)) ([]lease.Acquired, error) {
	t.Helper()
	l := lease.Limit{Name: "s", Slots: 4}
	if _, err := r.clean.MakeLimit(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	r.takeSlots(t, l, 0, 1, 2, 3)
	for _, row := range []string{l.Slot(0), l.Slot(1)} {
		release(t, r.clean, r.row(t, row).Lease)
	}
	gate := faultdb.NewGate()
	t.Cleanup(gate.Release)
	r.faults.Set(granting(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Nth(1, faultdb.Block(gate)))))
	defer r.faults.Set(nil)
	var answers []lease.Acquired
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		answers, err = r.store.AcquireWithin(t.Context(), l, slotsOf(l, 0, 1), 1)
	}()
	<-gate.Arrived()
	f(l)
	gate.Release()
	<-done
	return answers, err
}

func TestAGrantThatCountedBeforeAChangeIsNotMade(t *testing.T) {
	eachAble(t, func(t *testing.T, r *rig) {
		answers, err := r.whileGranting(t, func(l lease.Limit) { r.resize(t, l, 2) })
		var other *lease.LimitError
		if !errors.As(err, &other) || other.Found != 2 || r.heldSlots(t) != 2 {
			t.Errorf("answered %+v, %v; %d are held", answers, err, r.heldSlots(t))
		}
	})
}

// The limit is what it was, and slots above it are held that the request has not counted.
func TestAGrantThatCountedBeforeTwoChangesIsNotMade(t *testing.T) {
	eachAble(t, func(t *testing.T, r *rig) {
		answers, err := r.whileGranting(t, func(l lease.Limit) {
			r.takeSlots(t, r.resize(t, l, 6), 4, 5)
			r.resize(t, l, 4)
		})
		if err != nil || answers[0].Granted || answers[1].Granted || r.heldSlots(t) != 4 {
			t.Errorf("answered %+v, %v; %d are held", answers, err, r.heldSlots(t))
		}
	})
}

func TestAGrantOfSlotsWhoseReplyIsLostIsFoundAgain(t *testing.T) {
	eachAble(t, func(t *testing.T, r *rig) {
		l := lease.Limit{Name: "s", Slots: 4}
		if _, err := r.clean.MakeLimit(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		r.takeSlots(t, l, 0, 1, 2, 3)
		for i := range l.Slots {
			release(t, r.clean, r.row(t, l.Slot(i)).Lease)
		}
		lost := faultdb.NewCounter(granting(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Nth(1, faultdb.LoseReply()))))
		if r.Driver == "sqlite" {
			lost = faultdb.NewCounter(faultdb.OnCommitText(faultdb.Nth(1, faultdb.LoseReply())))
		}
		r.faults.Set(lost)
		defer r.faults.Set(nil)
		reqs := slotsOf(l, 3, 1, 0, 2)
		answers, err := r.store.AcquireWithin(t.Context(), l, reqs, 2)
		if err != nil || lost.Faults() != 1 {
			t.Fatalf("%d replies were lost: %+v, %v", lost.Faults(), answers, err)
		}
		for i, a := range answers {
			if row := r.row(t, reqs[i].Key); a.Granted != (row.Owner == reqs[i].Owner) {
				t.Errorf("%q is answered %+v, and the row is %+v", reqs[i].Key, a, row)
			}
		}
		if n := r.heldSlots(t); n != 2 {
			t.Errorf("%d are held", n)
		}
	})
}

// A call for any key sends what it did before there were limits; see TestStatementsOfAny. A slot
// costs one statement more, and two while the limit is less than it was.
func TestStatementsOfSlots(t *testing.T) {
	want := map[string][2]int{"postgres": {2, 3}, "mysql": {3, 4}, "sqlite": {6, 7}}
	eachAble(t, func(t *testing.T, r *rig) {
		l := lease.Limit{Name: "s", Slots: 4}
		if _, err := r.clean.MakeLimit(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		r.takeSlots(t, l, 0, 1, 2, 3)
		for i := range l.Slots {
			release(t, r.clean, r.row(t, l.Slot(i)).Lease)
		}
		ask := func() int {
			r.log.Reset()
			answers, err := r.store.AcquireWithin(t.Context(), l, slotsOf(l, 0, 1), 1)
			if err != nil || !answers[0].Granted {
				t.Fatalf("%+v, %v", answers, err)
			}
			sent := r.log.Count(faultdb.Op.Executes)
			release(t, r.clean, r.row(t, l.Slot(0)).Lease)
			return sent
		}
		whole := ask()
		l = r.resize(t, l, 3)
		less := ask()
		if w := want[r.Dialect.Name()]; w != [2]int{whole, less} {
			t.Errorf("%d statements, and %d while the limit is less than it was; want %v", whole, less, w)
		}
	})
}
