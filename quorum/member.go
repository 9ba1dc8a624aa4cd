package quorum

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// mostCalls bounds the calls to one member that are under way. A member that hangs and ignores
// contexts then takes no more goroutines.
const mostCalls = 1024

// grace is how long a call waits for further members once it has enough, besides as long as it took
// until then. A member that did not answer in that time is not waited for until it does.
const grace = 5 * time.Millisecond

// member is one of the stores.
type member struct {
	at      int // its place, from 0
	store   lease.Store
	raiser  lease.Raiser
	settler lease.Settler // nil if it cannot tell
	sweeper lease.Sweeper // nil if its rows stay
	room    chan struct{}
	dirt    dirt
	slow    atomic.Bool   // it was late
	calls   order[string] // by key
}

func newMember(at int, store lease.Store) *member {
	m := &member{at: at, store: store, room: make(chan struct{}, mostCalls)}
	m.raiser, _ = adapter.As[lease.Raiser](store)
	m.settler, _ = adapter.As[lease.Settler](store)
	m.sweeper, _ = adapter.As[lease.Sweeper](store)
	return m
}

// named says which member an error comes from.
func (m *member) named(err error) error { return fmt.Errorf("member %d: %w", m.at+1, err) }

// round is one request to several members at once, each with items of its own.
type round[A any] struct {
	what  string
	bound time.Duration
	// items is how many each member is asked for; a member with none is not asked.
	items []int
	// keys, unless nil, are those of the items: a member is asked for one after the other.
	keys func(m *member) []string
	// reads says that the call only reads, of these keys or of all.
	reads bool
	// waits says that what further members say is worth a moment when there is enough.
	waits bool
	send  func(ctx context.Context, m *member) ([]A, error)
	// failed is the answer for an item whose call has failed.
	failed func(error) A
	// take gets the answers as they come, on the caller's goroutine, and says when they are enough.
	take func(m *member, answers []A) (enough bool)
	// late gets those that come afterwards, each on a goroutine of its own. It may be nil.
	late func(m *member, answers []A)
}

// run sends the round, and returns when take has enough, all have answered, the bound has passed or
// ctx has ended. The calls go on until the bound: what they do must become known.
func run[A any](ctx context.Context, s *Store, r round[A]) {
	e := &election[A]{round: &r, answers: make(chan answered[A]), left: make(chan struct{})}
	defer close(e.left)
	e.began = time.Now()
	calling := context.WithoutCancel(ctx)
	for _, m := range s.members {
		if r.items[m.at] > 0 {
			e.asked = append(e.asked, m)
			e.send(calling, s, m)
		}
	}
	e.count(ctx)
}

// election is a round under way.
type election[A any] struct {
	*round[A]
	asked   []*member
	answers chan answered[A]
	left    chan struct{} // closed when the caller has left
	began   time.Time
	enough  atomic.Int64 // when a further answer is too late, in ns since it began; 0: unknown
}

type answered[A any] struct {
	m   *member
	all []A
}

// send calls a member on a goroutine, in the order of its keys.
func (e *election[A]) send(ctx context.Context, s *Store, m *member) {
	var keys []string
	if e.keys != nil {
		keys = e.keys(m)
	}
	turn := m.calls.look(keys)
	if !e.reads {
		turn = m.calls.join(keys)
	}
	s.calls.Go(func() {
		got := call(ctx, m, e.round, turn)
		m.calls.leave(turn, keys)
		if end := e.enough.Load(); end == 0 || int64(time.Since(e.began)) <= end {
			m.slow.Store(false)
		}
		select {
		case e.answers <- answered[A]{m, got}:
		case <-e.left:
			if e.late != nil {
				e.late(m, got)
			}
		}
	})
}

// count takes answers until there are enough, and further ones for a moment.
func (e *election[A]) count(ctx context.Context) {
	timer := time.NewTimer(e.bound + e.bound/8) // a member's own error says more
	defer timer.Stop()
	missing := make(map[*member]bool)
	for _, m := range e.asked {
		missing[m] = true
	}
	for len(missing) > 0 {
		select {
		case a := <-e.answers:
			delete(missing, a.m)
			if e.take(a.m, a.all) && e.stop(missing, timer) {
				return
			}
		case <-timer.C:
			for m := range missing {
				m.slow.Store(true)
			}
			return
		case <-ctx.Done():
			return
		}
	}
}

// stop reports whether there is nothing more to wait for once there is enough.
func (e *election[A]) stop(missing map[*member]bool, timer *time.Timer) bool {
	if e.enough.Load() == 0 {
		took := time.Since(e.began)
		e.enough.Store(int64(2*took + grace))
		timer.Reset(min(e.bound, took+grace))
	}
	for m := range missing {
		if e.waits && !m.slow.Load() {
			return false
		}
	}
	return true
}

// call asks one member, and returns an answer for each item.
func call[A any](ctx context.Context, m *member, r *round[A], turn *turn) []A {
	failed := func(err error) A { return r.failed(m.named(err)) }
	select {
	case m.room <- struct{}{}:
		defer func() { <-m.room }()
	default:
		err := fmt.Errorf("%w: %s: %d calls have no answer yet", lease.ErrBusy, r.what, mostCalls)
		return adapter.Each[A](r.what, nil, err, r.items[m.at], failed)
	}
	ctx, cancel := context.WithTimeout(ctx, r.bound)
	defer cancel()
	if err := turn.wait(ctx); err != nil {
		err = fmt.Errorf("%w: %s: the call before it has no answer: %w", lease.ErrBusy, r.what, err)
		return adapter.Each[A](r.what, nil, err, r.items[m.at], failed)
	}
	answers, err := r.send(ctx, m)
	return adapter.Each(r.what, answers, err, r.items[m.at], failed)
}

// all asks every member for n items.
func (s *Store) all(n int) []int { return slices.Repeat([]int{n}, len(s.members)) }

// only asks one member for n items.
func (s *Store) only(m *member, n int) []int {
	items := make([]int, len(s.members))
	items[m.at] = n
	return items
}

// keysOf returns the keys of items for every member alike.
func keysOf[T any](items []T, key func(T) string) func(*member) []string {
	keys := make([]string, len(items))
	for i, item := range items {
		keys[i] = key(item)
	}
	return func(*member) []string { return keys }
}

func ofLease(l lease.Lease) string { return l.Key }
