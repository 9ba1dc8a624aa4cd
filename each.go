package rowlock

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rowlockdb/rowlock/internal/acquire"
	"github.com/rowlockdb/rowlock/lease"
)

// Part is one part of what LockEach locks. Make it with Exclusive, Shared or the method Permits of
// a semaphore. A Part can be used again.
type Part struct {
	kind  partKind
	keys  []string
	of    *Client
	slots Slots
}

type partKind uint8

const (
	noPart partKind = iota
	exclusivePart
	sharedPart
	slotsPart
)

// Exclusive is keys that are locked as Lock does.
func Exclusive(keys ...string) Part { return Part{kind: exclusivePart, keys: slices.Clone(keys)} }

// Shared is keys that are locked as RLock does.
func Shared(keys ...string) Part { return Part{kind: sharedPart, keys: slices.Clone(keys)} }

// Slots are N slots of a limit. It is what the permits of package semaphore are made of.
type Slots struct {
	// Name is that of the limit.
	Name string
	N    int
	// Limit returns the limit in force, as TrySlots takes it. again says that the store knew another
	// one than Limit has returned before. LockEach returns its error, and keeps nothing.
	Limit func(ctx context.Context, again bool) (lease.Limit, error)
	// Granted, unless it is nil, is called with what LockEach returns.
	Granted func(*Locks)
}

// Slots is slots of a limit, for LockEach of this client.
func (c *Client) Slots(s Slots) Part { return Part{kind: slotsPart, of: c, slots: s} }

// TryLockEach gets all that parts name if it is free, and otherwise nothing: then the error is a
// *HeldError, or several joined, of what is known to be in the way. A semaphore that has too few
// free permits is one with the key "semaphore/NAME". It never waits.
//
// A key that comes twice in one way is locked once; one that is to be exclusive and shared is
// refused with ErrConfig. There may be 1 to 512 keys and permits. Every option applies to each
// lock, and takes the place of those that the semaphore was made with. Reentrant is refused.
//
// It reads what is held, joins the readers of keys to share, takes the permits of each semaphore,
// and at last takes the exclusive keys, and those to share that no reader holds, in one statement.
// Each step writes nothing if it is refused. So other callers may for a moment find a key shared,
// or a permit taken, that its asker does not keep, if something else was taken after the read. They
// never find an exclusive key held so, but in a Fair client and through a bridge, as with
// TryLockAll.
func (c *Client) TryLockEach(ctx context.Context, parts []Part, opts ...Option) (*Locks, error) {
	return c.each(ctx, parts, opts, false)
}

// LockEach waits until it has all that parts name, exclusive keys, shared keys and permits of
// semaphores, or ctx ends; then the error is ctx.Err() and ErrHeld (or ErrBusy), as with Lock.
// Parts and options are as for TryLockEach. With exclusive keys alone it is LockAll, and with
// shared keys alone RLockAll.
//
// It holds none of them while it waits for another, and a call that gives up leaves nothing behind.
// Two such calls cannot deadlock, whatever their order. All must be free at one moment: give it a
// ctx that ends. It waits in the queue of a key that is in the way as LockAll does, and its
// exclusive keys keep new readers out as those of Lock. For permits one call of this client asks at
// a time, when one is released here, and every 10 to 250 ms.
//
// In a Fair client it takes one key after the other, in key order, and then the permits, without an
// order of their own, and keeps what it has. It cannot deadlock with another LockEach or LockAll,
// but with a caller that holds a permit and waits for a key.
//
// A key that ctx holds already is refused with ErrDeadlock, or with ErrUpgrade if ctx shares it and
// it is to be exclusive. Permits are refused with ErrDeadlock if ctx holds so many of that
// semaphore that there can never be enough. In the search for cycles only exclusive keys count.
//
// If parts need shared keys or permits, a store that cannot do that, as a bridge, is refused with
// ErrUnsupported before anything is written.
func (c *Client) LockEach(ctx context.Context, parts []Part, opts ...Option) (*Locks, error) {
	return c.each(ctx, parts, opts, true)
}

func (c *Client) each(
	ctx context.Context, parts []Part, opts []Option, wait bool,
) (*Locks, error) {
	m, err := c.mixOf(parts)
	if err != nil {
		return nil, err
	}
	got := c.newCall(m.names(), wait)
	got.Want.Shared = m.onlyShared()
	if err := c.check(ctx, got, opts); err != nil {
		return nil, err
	}
	if got.reentrant {
		return nil, fmt.Errorf("%w: LockEach with Reentrant; lock what ctx holds with Lock or LockAll",
			lease.ErrConfig)
	}
	if err := m.into(ctx, c, got); err != nil {
		return nil, err
	}
	if err := c.get(ctx, got); err != nil {
		return nil, err
	}
	locks := c.together(ctx, got.holds, nil)
	for _, s := range m.slots {
		if s.Granted != nil {
			s.Granted(locks)
		}
	}
	return locks, nil
}

// mixture is what the parts of a call come to.
type mixture struct {
	shared map[string]bool // each key, and whether it is to be shared
	slots  []Slots         // by name
	n      int             // shared keys
}

func (c *Client) mixOf(parts []Part) (*mixture, error) {
	m := &mixture{shared: make(map[string]bool)}
	total := 0
	for i, p := range parts {
		var err error
		switch p.kind {
		case exclusivePart, sharedPart:
			err = m.addKeys(p.keys, p.kind == sharedPart)
		case slotsPart:
			total += p.slots.N
			err = m.addSlots(c, p)
		default:
			err = fmt.Errorf("%w: part %d is empty; make it with Exclusive, Shared or Permits",
				lease.ErrConfig, i+1)
		}
		if err != nil {
			return nil, err
		}
	}
	switch total += len(m.shared); {
	case total == 0:
		return nil, fmt.Errorf("%w: no keys to lock; name at least one", lease.ErrConfig)
	case total > maxTogether:
		return nil, fmt.Errorf("%w: %d keys and permits to lock together; at most %d are allowed: "+
			"lock one key that stands for several", lease.ErrConfig, total, maxTogether)
	}
	return m, m.apart()
}

func (m *mixture) addKeys(keys []string, shared bool) error {
	for _, key := range keys {
		if before, twice := m.shared[key]; twice && before != shared {
			return fmt.Errorf("%w: %q is to be locked exclusive and shared; name it once",
				lease.ErrConfig, key)
		} else if !twice && shared {
			m.n++
		}
		m.shared[key] = shared
	}
	return nil
}

func (m *mixture) addSlots(c *Client, p Part) error {
	s := p.slots
	switch ofLimit := (lease.Limit{Name: s.Name, Slots: lease.MaxSlots}); {
	case p.of == nil || p.of.core != c.core || p.of.space != c.space:
		return fmt.Errorf("%w: permits of %q belong to another client; make the semaphore with this one",
			lease.ErrConfig, s.Name)
	case s.Limit == nil:
		return fmt.Errorf("%w: slots of %q: Limit is nil", lease.ErrConfig, s.Name)
	case s.N < 1:
		return fmt.Errorf("%w: %d permits of %q; ask for at least one, or leave the part out",
			lease.ErrConfig, s.N, s.Name)
	case slices.ContainsFunc(m.slots, func(o Slots) bool { return o.Name == s.Name }):
		return fmt.Errorf("%w: permits of %q are named twice; name it once, for all of them",
			lease.ErrConfig, s.Name)
	default:
		m.slots = append(m.slots, s)
		return ofLimit.Check()
	}
}

// apart refuses keys that are slots of the same call.
func (m *mixture) apart() error {
	slices.SortFunc(m.slots, func(a, b Slots) int { return cmp.Compare(a.Name, b.Name) })
	for _, s := range m.slots {
		for key := range m.shared {
			if _, slot := (lease.Limit{Name: s.Name}).Index(key); slot {
				return fmt.Errorf("%w: %q is a slot of %q, of which the call wants permits: leave it out",
					lease.ErrConfig, key, s.Name)
			}
		}
	}
	return nil
}

func (m *mixture) names() []string { return slices.Sorted(maps.Keys(m.shared)) }

func (m *mixture) onlyShared() bool { return m.n == len(m.shared) && len(m.slots) == 0 }

// into has a call that was checked ask for the mixture. It refuses what the store cannot do, or
// what the ctx of the call holds.
func (m *mixture) into(ctx context.Context, c *Client, got *call) error {
	mix := &acquire.Mix{}
	for _, full := range got.Keys {
		if m.shared[got.names.Own(full)] { // ParentKey has the names of the parent
			mix.Shared = append(mix.Shared, full)
		}
	}
	for _, s := range m.slots {
		mix.Slots = append(mix.Slots, c.within(ctx, s))
	}
	if len(mix.Slots) > 0 {
		if _, err := c.store.Limits(); err != nil {
			return err
		}
	}
	if len(mix.Shared) > 0 {
		if err := c.store.CanShare(ctx); err != nil {
			return err
		}
	}
	if len(mix.Slots) > 0 || len(mix.Shared) > 0 && !got.Want.Shared {
		got.Mix = mix
	}
	return c.mayMix(ctx, got, mix)
}

// mayMix refuses keys that ctx holds.
func (c *Client) mayMix(ctx context.Context, got *call, mix *acquire.Mix) error {
	above := chainOf(ctx)
	for _, key := range got.Keys {
		h := above.find(c.tables, key)
		switch {
		case h == nil:
		case h.id().Shared && !slices.Contains(mix.Shared, key):
			return upgrade(h)
		default:
			return &DeadlockError{Key: key, Token: h.lease.Token, Where: h.where()}
		}
	}
	return nil
}

// within is what the store is asked for. Permits that ctx holds are not released while it waits.
func (c *Client) within(ctx context.Context, s Slots) acquire.Slots {
	name := c.space.Full(s.Name)
	return acquire.Slots{Name: name, N: s.N, Limit: func(now context.Context, again bool) (lease.Limit, error) {
		limit, err := s.Limit(now, again)
		if err != nil {
			return limit, err
		}
		if err := checkSlots(limit, s.N); err != nil {
			return limit, err
		}
		limit.Name = name
		mine, last := chainOf(ctx).slots(c.tables, limit)
		if last != nil && mine+s.N > limit.Slots {
			return limit, &DeadlockError{Key: last.lease.Key, Token: last.lease.Token, Where: last.where()}
		}
		return limit, nil
	}}
}

// slots returns how many slots of a limit the chain holds, and one of them.
func (c *chain) slots(tables any, limit lease.Limit) (n int, last *hold) {
	for h := range c.in(tables) {
		if _, ours := limit.Index(h.lease.Key); ours {
			n, last = n+1, h
		}
	}
	return n, last
}
