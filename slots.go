package rowlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/queue"
	"github.com/rowlockdb/rowlock/lease"
)

// SlotCall is a call for N slots, whose locks' contexts carry the values of Ctx. PassSlots calls
// Give with the slots if the call has got them.
type SlotCall struct {
	Ctx  context.Context
	N    int
	Give func(*Locks)
}

// TrySlotsFor gets the locks on slots of a limit for calls of this process, in one statement that
// also checks the limit: at most limit.Slots of them are held at a time, in all processes. All
// calls get their slots, or none. Which slots that are is random. It never waits. It is what
// package semaphore is made of. ctx bounds the statement, and the Ctx of a call bounds nothing.
//
// The error is a *LimitError if another number of slots is in force, and one or several
// *HeldError if too few may be granted now.
func (c *Client) TrySlotsFor(
	ctx context.Context, limit lease.Limit, calls []SlotCall, opts ...Option,
) ([]*Locks, error) {
	n, err := checkCalls(limit, calls)
	if err != nil {
		return nil, err
	}
	got := c.newCall(false, slotKeys(limit)...)
	limit.Name = c.space.Full(limit.Name)
	got.Within, got.N = &limit, n
	for _, call := range calls { // also a single one: ctx may be another caller's, which asks for it
		got.each = append(got.each, slices.Repeat([]context.Context{call.Ctx}, call.N)...)
	}
	if err := c.check(ctx, got, opts); err != nil {
		return nil, err
	}
	if got.Want.Shared {
		return nil, fmt.Errorf("%w: slots of %q cannot be shared", lease.ErrConfig, limit.Name)
	}
	if err := c.get(ctx, got); err != nil {
		return nil, err
	}
	all := make([]*Locks, len(calls))
	holds := got.holds
	for i, call := range calls {
		all[i] = c.together(call.Ctx, holds[:call.N], nil)
		holds = holds[call.N:]
	}
	return all, nil
}

// slotKeys returns the keys of all slots of a limit.
func slotKeys(limit lease.Limit) []string {
	keys := make([]string, limit.Slots)
	for i := range keys {
		keys[i] = limit.Slot(i)
	}
	return keys
}

// PassSlots unlocks slots of a limit and has waiting calls get them in the same statement, in the
// order of the slots' keys. It passes a slot on only if the limit was not resized since the slot
// was granted. Slots that are not passed on, or only for a part of what a call wants, are released.
//
// The error is that of Locks.Unlock, and says nothing about the calls.
func (c *Client) PassSlots(
	ctx context.Context, limit lease.Limit, from *Locks, calls []SlotCall, opts ...Option,
) error {
	got := c.newCall(false, from.Keys()...)
	limit.Name = c.space.Full(limit.Name)
	got.Within = &limit
	for _, call := range calls {
		got.N += call.N
	}
	if got.N > len(from.locks) || c.store.SlotPasser == nil || c.check(ctx, got, opts) != nil || got.Want.Shared ||
		!c.calls.Enter() {
		return from.Unlock(ctx)
	}
	defer c.calls.Leave()
	nextOwners := got.nextOwners(from, calls)
	if got.space != nil {
		if got.enter(got.N) != nil { // the quota of a namespace
			return from.Unlock(ctx)
		}
		defer got.leave(got.N)
	}
	got.began = time.Now()
	defer func() { c.asker.Discard(ctx, passedOn(nextOwners)) }() // of calls behind a panic in a hook
	err := from.unlock(ctx, true, nextOwners)
	for _, call := range calls {
		g := passedOn(nextOwners[:call.N])
		nextOwners = nextOwners[call.N:]
		if len(g.Each) < call.N {
			c.asker.Discard(ctx, g)
		} else if locks := c.inherit(call, got, g); locks != nil {
			call.Give(locks)
		}
	}
	return err
}

// nextOwners returns the next owner of each of the first slots.
func (got *call) nextOwners(from *Locks, calls []SlotCall) (nextOwners []*queue.NextOwner) {
	for _, call := range calls {
		for range call.N {
			l := from.locks[len(nextOwners)]
			nextOwners = append(nextOwners, &queue.NextOwner{
				Limit: got.Within.Name, Generation: l.h.slotOf, To: got.Want.Request(l.h.lease.Key),
			})
		}
	}
	return nextOwners
}

// passedOn returns what next owners were granted.
func passedOn(nextOwners []*queue.NextOwner) (g queue.Grants) {
	for _, h := range nextOwners {
		if h.Answer.Err == nil && h.Answer.Granted {
			g.Sent = h.Sent // all slots of a call are in one request
			g.Each = append(g.Each, queue.Grant{Req: h.To, Answer: h.Answer})
		}
	}
	return g
}

// inherit keeps slots alive that were passed on, for a call. It returns nil if they are lost.
func (c *Client) inherit(one SlotCall, got *call, g queue.Grants) *Locks {
	before, whole := len(got.holds), false
	defer func() { // also after a panic in a hook
		if !whole {
			c.discard(one.Ctx, got.holds[before:])
		}
	}()
	if err := c.hold(one.Ctx, got, g); err != nil {
		return nil
	}
	whole = true
	return c.together(one.Ctx, got.holds[before:], nil)
}

// checkCalls returns how many slots the calls want together.
func checkCalls(limit lease.Limit, calls []SlotCall) (n int, err error) {
	for _, call := range calls {
		if err := isnil.Context("TrySlotsFor", call.Ctx); err != nil {
			return 0, err
		}
		if err := checkSlots(limit, call.N); err != nil {
			return 0, err
		}
		n += call.N
	}
	return n, checkSlots(limit, n)
}

func checkSlots(limit lease.Limit, n int) error {
	if err := limit.Check(); err != nil {
		return err
	}
	if n < 1 || n > limit.Slots {
		return fmt.Errorf("%w: %d slots of limit %q; 1 to %d are allowed", lease.ErrConfig, n, limit.Name,
			limit.Slots)
	}
	return nil
}

// Fair reports whether Config.Fair is set: waiters are served in order across processes.
func (c *Client) Fair() bool { return c.cfg.Fair }

// SlotHints tells a caller of TrySlotsFor that another process may have released slots. It only
// reduces latency: a hint may be lost, and where the database tells of no release none comes.
type SlotHints struct {
	w    *queue.Watch
	full func(key string) string
}

// SlotHints begins to hear of the slots of a limit. End it with Stop.
func (c *Client) SlotHints(limit lease.Limit) *SlotHints {
	limit.Name = c.space.Full(limit.Name)
	return &SlotHints{c.queue.Watch(slotKeys(limit)), c.space.Full}
}

// Register is to be called before each TrySlotsFor: a release after that is announced to this
// process. It sends a statement about every 5 s.
func (h *SlotHints) Register(ctx context.Context) { h.w.Register(ctx) }

// Freed gets a value when slots may have been released.
func (h *SlotHints) Freed() <-chan struct{} { return h.w.Freed() }

// Awaited reports whether another process waits for one of the slots, or for the key, or may do so.
func (h *SlotHints) Awaited(ctx context.Context, key string) bool {
	return h.w.Awaited(ctx, h.full(key))
}

// Stop ends it.
func (h *SlotHints) Stop() { h.w.Stop() }

// MakeLimit makes a limit unless there is one of that name, and returns the one in force.
func (c *Client) MakeLimit(ctx context.Context, limit lease.Limit) (found lease.Limit, err error) {
	err = c.limits(ctx, limit, func(full lease.Limit, l lease.Limiter) error {
		found, err = l.MakeLimit(ctx, full)
		return err
	})
	found.Name = limit.Name
	return found, err
}

// ResizeLimit changes the number of slots of a limit in all processes. It takes no slot away. The
// error is a *LimitError if there is no limit of that name.
func (c *Client) ResizeLimit(ctx context.Context, limit lease.Limit) error {
	return c.limits(ctx, limit, func(full lease.Limit, l lease.Limiter) error {
		return l.Resize(ctx, full)
	})
}

func (c *Client) limits(
	ctx context.Context, limit lease.Limit, f func(full lease.Limit, l lease.Limiter) error,
) error {
	if err := cmp.Or(isnil.Context("limit", ctx), limit.Check()); err != nil {
		return err
	}
	limit.Name = c.space.Full(limit.Name)
	if err := limit.Check(); err != nil {
		return err
	}
	if !c.calls.Enter() { // Close waits for this call before it closes the store
		return queue.Closed([]string{limit.Name})
	}
	defer c.calls.Leave()
	l, err := c.store.Limits()
	if err != nil {
		return err
	}
	return f(limit, l)
}
