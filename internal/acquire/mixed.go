package acquire

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

// Mix is what a call wants besides exclusive keys. Its call alone changes it.
type Mix struct {
	// Shared are those of the call's keys that it shares, in order.
	Shared []string
	// Slots are in the order of their limits' names.
	Slots []Slots

	full  string        // the limit of which the last bid found too few slots, if any
	pause time.Duration // before the next bid for slots
}

// Slots are N slots of a limit.
type Slots struct {
	Name string
	N    int
	// Limit returns the limit in force. again says that the store knew another one. An error ends the
	// call.
	Limit func(ctx context.Context, again bool) (lease.Limit, error)

	again bool
	wide  bool // slots beyond the limit may be held
}

// Permits is how many slots there are. nil has none.
func (m *Mix) Permits() (n int) {
	if m != nil {
		for _, s := range m.Slots {
			n += s.N
		}
	}
	return n
}

// Each returns a call for each key, and then one for the slots of each limit.
func (c *Call) Each() (calls []*Call) {
	for _, key := range c.Keys {
		one := &Call{Keys: []string{key}, Want: c.Want}
		one.Want.Shared = c.shares(key)
		calls = append(calls, one)
	}
	for i := range c.Mix.Slots {
		calls = append(calls, &Call{Want: c.Want, Mix: &Mix{Slots: c.Mix.Slots[i : i+1]}})
	}
	return calls
}

// Names are what the call is for: keys, and the names of limits.
func (c *Call) Names() []string {
	if c.Mix == nil {
		return c.Keys
	}
	names := slices.Clone(c.Keys)
	for _, s := range c.Mix.Slots {
		names = append(names, s.Name)
	}
	return names
}

// alone are the keys that the call does not share.
func (c *Call) alone() []string {
	if c.Mix == nil {
		return c.Keys
	}
	var keys []string
	for _, key := range c.Keys {
		if !c.shares(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// awaited returns the keys that the call waits for, and those that it waits to share beside others:
// it may wait for another key while readers share one. A reader of one key waits for nothing else:
// if others share that, it waits behind a writer's wish.
func (c *Call) awaited() (wants, shares []string) {
	if len(c.Keys) == 1 {
		return c.Keys, nil
	}
	for _, key := range c.Keys {
		if c.shares(key) {
			shares = append(shares, key)
		} else {
			wants = append(wants, key)
		}
	}
	return wants, shares
}

// shares reports whether the call shares key.
func (c *Call) shares(key string) bool {
	return c.Want.Shared || c.Mix != nil && slices.Contains(c.Mix.Shared, key)
}

// mostRaces is how often a bid begins anew at once because a key that it was to share came to be
// shared meanwhile.
const mostRaces = 3

// Mixed tries once to get all that a call of several kinds wants. Each step is refused before it
// writes, and the exclusive keys come last, so that no call holds one of them in vain.
func (a *Asker) Mixed(ctx context.Context, c *Call) (Grants, error) {
	for races := 0; ; {
		m := mixed{Asker: a, c: c}
		g, err := m.run(ctx)
		if m.raced {
			races++
		}
		switch {
		case err == nil:
			return g, nil
		case !m.again && !m.raced || races >= mostRaces || ctx.Err() != nil:
			return Grants{}, err
		}
	}
}

// mixed is one bid.
type mixed struct {
	*Asker
	c      *Call
	sent   time.Time
	limits []lease.Limit

	members Grants   // granted and not
	free    []string // keys to share that no one holds
	slots   []Grants
	keys    Grants // exclusive ones
	made    Grants // teams

	again bool // another limit is in force than was asked under
	raced bool // a free key came to be shared
}

// run keeps nothing of a part, nor if a hook panics.
func (m *mixed) run(ctx context.Context) (Grants, error) {
	if m.IsClosed() {
		return Grants{}, Closed(m.c.Names())
	}
	whole := false
	defer func() {
		if !whole {
			m.Discard(ctx, m.grants())
		}
	}()
	m.c.Mix.full = ""
	for _, step := range [...]func(context.Context) error{
		m.inForce, m.look, m.join, m.take, m.lock, m.found,
	} {
		if err := step(ctx); err != nil {
			return Grants{}, err
		}
	}
	whole = true
	return m.grants(), nil
}

// inForce finds the limits.
func (m *mixed) inForce(ctx context.Context) error {
	for i := range m.c.Mix.Slots {
		s := &m.c.Mix.Slots[i]
		limit, err := s.Limit(ctx, s.again)
		if err != nil {
			return err
		}
		s.again = false
		m.limits = append(m.limits, limit)
	}
	return nil
}

// look reads what is held, so that a call that cannot get all writes nothing. It only spares work:
// the steps that follow refuse by themselves, and say more of a database that fails.
func (m *mixed) look(ctx context.Context) error {
	alone := m.c.alone()
	keys := slices.Clone(alone)
	for i := range m.limits {
		keys = append(keys, m.slotKeys(i)...)
	}
	m.sent = time.Now()
	if len(keys) == 0 {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, seam.Timeout)
	defer cancel()
	records, err := m.Store.Inspect(short, lease.Filter{Keys: keys, Held: true, Limit: len(keys)})
	if err != nil {
		return nil
	}
	m.sent = time.Now()
	held := make(map[string]lease.Record, len(records))
	for _, r := range records {
		if r.Err == nil { // the steps that follow say what is wrong
			held[r.Key] = r
		}
	}
	if err := m.heldBy(ctx, alone, held); err != nil {
		return err
	}
	for i := range m.limits {
		if m.grantable(i, held) < m.c.Mix.Slots[i].N {
			return m.full(ctx, i, m.changed(ctx, i))
		}
	}
	return nil
}

// slotKeys are the slots that count in a limit.
func (m *mixed) slotKeys(i int) []string {
	n := m.limits[i].Slots
	if m.c.Mix.Slots[i].wide {
		n = lease.MaxSlots
	}
	keys := make([]string, n)
	for slot := range keys {
		keys[slot] = m.limits[i].Slot(slot)
	}
	return keys
}

// grantable is how many slots of a limit may be granted.
func (m *mixed) grantable(i int, by map[string]lease.Record) (free int) {
	held := make([]bool, lease.MaxSlots)
	for slot := range held {
		_, held[slot] = by[m.limits[i].Slot(slot)]
	}
	for _, taken := range held[:m.limits[i].Bound(held)] {
		if !taken {
			free++
		}
	}
	return free
}

// heldBy is an error if one of keys is held.
func (m *mixed) heldBy(ctx context.Context, keys []string, held map[string]lease.Record) error {
	var g Grants
	for _, key := range keys {
		if r, ok := held[key]; ok {
			by := lease.Holder{Note: r.Note, Remaining: r.Remaining, Shared: r.Shared}
			g.Each = append(g.Each, Grant{
				Req: lease.AcquireRequest{Key: key}, Answer: lease.Acquired{Holder: by},
			})
		}
	}
	if len(g.Each) == 0 {
		return nil
	}
	return m.contended(ctx, g, m.c.Want.Quiet)
}

// changed asks whether another limit is in force than slots were counted in: no statement that
// grants has said so.
func (m *mixed) changed(ctx context.Context, i int) error {
	limit, err := m.c.Mix.Slots[i].Limit(ctx, true)
	m.again = err == nil && limit.Slots != m.limits[i].Slots
	return err
}

// full is the error for a limit of which too few slots are free, unless the call has failed.
func (m *mixed) full(ctx context.Context, i int, failed error) error {
	if failed != nil {
		return failed
	}
	m.c.Mix.full = m.c.Mix.Slots[i].Name
	held := &lease.HeldError{Key: m.c.Mix.full}
	if !m.c.Want.Quiet && !m.again {
		m.tell(ctx, held)
	}
	return held
}

// join joins the teams that hold keys to share.
func (m *mixed) join(ctx context.Context) error {
	if len(m.c.Mix.Shared) == 0 {
		return nil
	}
	m.members = Grants{Sent: m.sent, Shared: true}
	m.members.Each = m.Asker.members(ctx, m.c, m.c.Mix.Shared)
	free, err := m.joined(ctx, m.members, m.c.Want.Quiet)
	for _, of := range free {
		m.free = append(m.free, of.Req.Key)
	}
	return err
}

// take takes slots, of one limit after the other.
func (m *mixed) take(ctx context.Context) error {
	for i := range m.limits {
		s := &m.c.Mix.Slots[i]
		want := m.c.Want
		want.Quiet = true // full tells of the limit, and not of each slot
		keys := make([]string, m.limits[i].Slots)
		for slot := range keys {
			keys[slot] = m.limits[i].Slot(slot)
		}
		sub := &Call{Keys: keys, Want: want, Within: &m.limits[i], N: s.N}
		g, err := m.Ask(ctx, sub, sub.Requests())
		if err == nil {
			m.slots = append(m.slots, g)
			continue
		}
		known := !errors.Is(err, lease.ErrUnknown)
		switch {
		case known && errors.Is(err, lease.ErrLimit):
			s.again, m.again = true, true
		case known && errors.Is(err, lease.ErrHeld):
			s.wide = true
			return m.full(ctx, i, nil)
		}
		return err
	}
	return nil
}

// lock takes the exclusive keys, and with them the free ones of which it makes teams.
func (m *mixed) lock(ctx context.Context) error {
	keys := append(m.c.alone(), m.free...)
	slices.Sort(keys)
	if len(keys) == 0 {
		return nil
	}
	sub := &Call{Keys: keys, Want: m.c.Want}
	g, err := m.Ask(ctx, sub, sub.Requests())
	if err != nil {
		m.raced = m.races(err)
		return err
	}
	shared := func(g *Grant) bool { return m.c.shares(g.Req.Key) }
	m.keys, m.made = g.only(func(g *Grant) bool { return !shared(g) }), g.only(shared)
	return nil
}

// races reports whether only keys are in the way that the call can share by now.
func (m *mixed) races(err error) bool {
	for _, e := range flat(err) {
		var held *lease.HeldError
		if !errors.As(e, &held) || !held.Shared || !m.c.shares(held.Key) {
			return false
		}
	}
	return true
}

// flat returns the errors that are joined in err, or err alone.
func flat(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return several.Unwrap()
	}
	return []error{err}
}

// found makes teams of the keys that were free. What it cannot make one is the orphan cleaner's.
func (m *mixed) found(ctx context.Context) (err error) {
	if len(m.made.Each) > 0 {
		m.made, err = m.Downgrade(ctx, m.made)
	}
	return err
}

// grants are all in one, the members last.
func (m *mixed) grants() Grants {
	g := Grants{Sent: m.sent}
	for _, part := range append([]Grants{m.keys}, m.slots...) {
		g.Each = append(g.Each, part.Each...)
	}
	for _, part := range []Grants{m.members.only(granted), m.made} {
		g.Each = append(g.Each, part.Each...)
		g.members += int32(len(part.Each))
	}
	return g
}

// Freed has the calls of this client bid that wait for slots of the limit that key may be of.
func (a *Asker) Freed(key string) {
	if a.turns.waiting.Load() == 0 {
		return
	}
	if i := strings.LastIndexByte(key, '/'); i > 0 {
		a.turns.of().Wake(key[:i])
	}
}
