package locktest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var slotPassFlaws = []flaw{
	{"a slot is handed over in any generation", func(m *mutant) {
		m.eachSlotPass(func(_ string, h lease.SlotHandOver) lease.Acquired {
			a := m.handed(h.HandOver)
			a.Generation = h.Generation
			return a
		})
	}, []string{
		"no slot is handed over once its limit was resized",
		"no slot is handed over that a resize before has ruled out, however many are at once",
	}},
	{"the number of slots is checked and not the generation", func(m *mutant) {
		var slots atomic.Int64
		m.resize = func(ctx context.Context, l lease.Limit) error {
			slots.Store(int64(l.Slots))
			return m.fencing.Resize(ctx, l)
		}
		m.eachSlotPass(func(_ string, h lease.SlotHandOver) lease.Acquired {
			if n := slots.Load(); n != 0 && n != 4 {
				return lease.Acquired{}
			}
			a := m.handed(h.HandOver)
			a.Generation = h.Generation
			return a
		})
	}, []string{"no slot is handed over once its limit was resized"}},
	{"the generation is checked before the statement", func(m *mutant) {
		var resized atomic.Int64
		resized.Store(1)
		m.resize = func(ctx context.Context, l lease.Limit) error {
			defer resized.Add(1)
			return m.fencing.Resize(ctx, l)
		}
		m.eachSlotPass(func(_ string, h lease.SlotHandOver) lease.Acquired {
			if h.Generation != resized.Load() {
				return lease.Acquired{}
			}
			time.Sleep(100 * time.Microsecond)
			resized.CompareAndSwap(h.Generation+1, h.Generation) // as a read of long ago
			a := m.handed(h.HandOver)
			a.Generation = h.Generation
			return a
		})
	}, []string{"no slot is handed over that a resize before has ruled out, however many are at once"}},
	{"a hand-over of a slot is a release and an acquire", func(m *mutant) {
		m.eachSlotPass(func(_ string, h lease.SlotHandOver) lease.Acquired {
			m.free(h.From)
			a := m.ask(h.To)
			a.Generation = h.Generation
			return a
		})
	}, []string{"a slot that is gone is not handed over"}},
	{"a slot that was handed over has no generation", func(m *mutant) {
		m.eachSlotPass(func(name string, h lease.SlotHandOver) lease.Acquired {
			a := m.slotPassed(name, h)
			a.Generation = 0
			return a
		})
	}, []string{"a slot is handed over with the next token and in the same generation"}},
	{"a repeated hand-over of a slot is refused", func(m *mutant) {
		m.eachSlotPass(func(name string, h lease.SlotHandOver) lease.Acquired {
			if row, ok := m.row(h.From.Key); ok && row.Owner == h.To.Owner {
				return lease.Acquired{}
			}
			return m.slotPassed(name, h)
		})
	}, []string{"a repeated hand-over of a slot returns the lease as it is"}},
	{"slots are handed over all or none", func(m *mutant) {
		m.passing = func(ctx context.Context, name string, items []lease.SlotHandOver) ([]lease.Acquired, error) {
			for _, h := range items {
				if row, ok := m.row(h.From.Key); !ok || row.Lease != h.From && row.Owner != h.To.Owner {
					return make([]lease.Acquired, len(items)), nil
				}
			}
			return m.fencing.PassSlots(ctx, name, items)
		}
	}, []string{"slots that are handed over together are answered each for itself"}},
}

func (m *mutant) slotPassed(name string, h lease.SlotHandOver) lease.Acquired {
	a, err := m.fencing.PassSlots(context.Background(), name, []lease.SlotHandOver{h})
	if err != nil {
		return lease.Acquired{Err: err}
	}
	return a[0]
}

func (m *mutant) eachSlotPass(answer func(name string, h lease.SlotHandOver) lease.Acquired) {
	m.passing = func(ctx context.Context, name string, items []lease.SlotHandOver) ([]lease.Acquired, error) {
		return each(ctx, items, func(h lease.SlotHandOver) lease.Acquired { return answer(name, h) })
	}
}

func (m *mutant) PassSlots(ctx context.Context, name string, items []lease.SlotHandOver) ([]lease.Acquired, error) {
	return m.passing(ctx, name, items)
}
