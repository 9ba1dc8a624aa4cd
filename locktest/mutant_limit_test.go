package locktest

import (
	"context"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var limitFlaws = []flaw{
	{"the limit is not checked in the statement", func(m *mutant) {
		m.within = func(ctx context.Context, _ lease.Limit, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			return m.fencing.AcquireAny(ctx, reqs, n)
		}
	}, []string{
		"a process with another limit is refused, and hears of both numbers",
		"a limit that was never made is refused",
		"slots of another name, a wrong number of them and a wrong limit are refused",
	}},
	{"the limit is checked before the statement", func(m *mutant) {
		m.within = func(ctx context.Context, l lease.Limit, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			found, err := m.fencing.MakeLimit(ctx, l)
			if err != nil || found != l {
				return nil, &lease.LimitError{Name: l.Name, Slots: l.Slots, Found: found.Slots}
			}
			time.Sleep(100 * time.Microsecond)
			return m.fencing.AcquireAny(ctx, reqs, n)
		}
	}, []string{
		"no more slots are held than the limit says, however many ask while it changes",
		"a smaller limit takes no slot away, and none is granted until fewer are held",
	}},
	{"slots below a smaller limit are granted whatever is held above it", func(m *mutant) {
		m.within = m.bounded(func(l lease.Limit, _ []bool) int { return l.Slots })
	}, []string{"a smaller limit takes no slot away, and none is granted until fewer are held"}},
	{"held slots just below a smaller limit are not counted", func(m *mutant) {
		m.within = m.bounded(func(l lease.Limit, held []bool) int {
			above := 0
			for _, h := range held[l.Slots:] {
				if h {
					above++
				}
			}
			return l.Slots - above
		})
	}, []string{"a slot that is released and one that is held below it are counted right"}},
	{"slots above a smaller limit stay held when their holder has died", func(m *mutant) {
		m.within = func(ctx context.Context, l lease.Limit, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			for i := l.Slots; i < lease.MaxSlots; i++ {
				if row, ok := m.row(l.Slot(i)); ok && !row.Owner.IsZero() {
					return make([]lease.Acquired, len(reqs)), nil
				}
			}
			return m.fencing.AcquireWithin(ctx, l, reqs, n)
		}
	}, []string{"a slot of a holder that has died is granted again, at any number"}},
	{"n is granted in part", func(m *mutant) {
		m.within = func(ctx context.Context, l lease.Limit, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			answers, err := m.fencing.AcquireWithin(ctx, l, reqs, n)
			for n--; n > 0 && err == nil && len(grantedOf(reqs, answers)) == 0; n-- {
				answers, err = m.fencing.AcquireWithin(ctx, l, reqs, n)
			}
			return answers, err
		}
	}, []string{
		"n slots are granted together or not at all",
	}},
	{"a smaller limit takes slots away", func(m *mutant) {
		m.resize = func(ctx context.Context, l lease.Limit) error {
			for i := l.Slots; i < lease.MaxSlots; i++ {
				if row, ok := m.row(l.Slot(i)); ok {
					m.free(row.Lease)
				}
			}
			return m.fencing.Resize(ctx, l)
		}
	}, []string{"a smaller limit takes no slot away, and none is granted until fewer are held"}},
	{"a limit is made over another", func(m *mutant) {
		m.making = func(ctx context.Context, l lease.Limit) (lease.Limit, error) {
			if _, err := m.fencing.MakeLimit(ctx, l); err != nil {
				return l, err
			}
			return l, m.fencing.Resize(ctx, l)
		}
	}, []string{"a limit is made once, and keeps its number"}},
	{"a larger limit is not seen", func(m *mutant) {
		m.resize = func(ctx context.Context, l lease.Limit) error {
			found, err := m.fencing.MakeLimit(ctx, l)
			if err == nil && found.Slots < l.Slots {
				return nil
			}
			return m.fencing.Resize(ctx, l)
		}
	}, []string{"a larger limit is granted at once"}},
	{"one slot too few is granted", func(m *mutant) {
		m.within = m.bounded(func(l lease.Limit, held []bool) int { return max(1, l.Bound(held)-1) })
	}, []string{"as many slots are granted as the limit says, and no more"}},
	{"slots asked for again are others", func(m *mutant) {
		m.within = func(ctx context.Context, l lease.Limit, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			fresh := slices.Clone(reqs)
			for i := range fresh {
				fresh[i].Owner = lease.NewOwner()
			}
			return m.fencing.AcquireWithin(ctx, l, fresh, n)
		}
	}, []string{"a request for slots asked for again is the same lease, whatever the limit is then"}},
}

// bounded grants slots below a bound of its own.
func (m *mutant) bounded(bound func(l lease.Limit, held []bool) int) func(
	context.Context, lease.Limit, []lease.AcquireRequest, int) ([]lease.Acquired, error) {
	return func(ctx context.Context, l lease.Limit, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
		held := make([]bool, lease.MaxSlots)
		for i := range held {
			row, ok := m.row(l.Slot(i))
			held[i] = ok && row.Held
		}
		b := bound(l, held)
		var at []int
		var some []lease.AcquireRequest
		for i, q := range reqs {
			if slot, _ := l.Index(q.Key); slot < b {
				at, some = append(at, i), append(some, q)
			}
		}
		out := make([]lease.Acquired, len(reqs))
		if len(some) < n {
			return out, nil
		}
		answers, err := m.fencing.AcquireAny(ctx, some, n)
		for i, a := range answers {
			out[at[i]] = a
		}
		return out, err
	}
}

func (m *mutant) AcquireWithin(
	ctx context.Context, l lease.Limit, reqs []lease.AcquireRequest, n int,
) ([]lease.Acquired, error) {
	return m.within(ctx, l, reqs, n)
}

func (m *mutant) Resize(ctx context.Context, l lease.Limit) error { return m.resize(ctx, l) }

func (m *mutant) MakeLimit(ctx context.Context, l lease.Limit) (lease.Limit, error) {
	return m.making(ctx, l)
}
