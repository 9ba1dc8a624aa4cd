package semaphore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock"
)

// ErrOther is returned by Semaphore.Release for a permit of another semaphore.
var ErrOther = errors.New("rowlock: the permit is of another semaphore")

// Permit is one or more slots of a semaphore that were granted together. Its methods are safe for
// concurrent use.
type Permit struct {
	s     *Semaphore
	locks *rowlock.Locks
	slots []Slot
}

// Slot is one of a permit's slots.
type Slot struct {
	// ID is its number, from 0 on. No other permit has it at the same time.
	ID int
	// Token is larger than those of all earlier holders of this slot. It orders nothing between two
	// slots.
	Token rowlock.Token
	// Lock is the slot's lock. To release the slot before the others, unlock it.
	Lock *rowlock.Lock
}

func newPermit(s *Semaphore, locks *rowlock.Locks) *Permit {
	p := &Permit{s: s, locks: locks}
	of := s.of(Max)
	for _, key := range locks.Keys() {
		id, _ := of.Index(key)
		l := locks.Lock(key)
		p.slots = append(p.slots, Slot{ID: id, Token: l.Token(), Lock: l})
	}
	return p
}

// Slots returns the permit's slots, by number.
func (p *Permit) Slots() []Slot { return append([]Slot(nil), p.slots...) }

// ID is the number of the first slot.
func (p *Permit) ID() int { return p.slots[0].ID }

// Context ends when the first of the slots is lost or released: see rowlock.Locks.Context.
func (p *Permit) Context() context.Context { return p.locks.Context() }

// Deadline is until when all slots can be trusted if no renewal succeeds any more.
func (p *Permit) Deadline() time.Time { return p.locks.Deadline() }

// Fence checks all slots in your transaction, and keeps them from being granted until it has ended:
// see rowlock.Lock.Fence. After an error roll back.
func (p *Permit) Fence(ctx context.Context, tx rowlock.Tx) error { return p.locks.Fence(ctx, tx) }

// Release gives all slots back. Its errors are those of rowlock.Locks.Unlock. It works with a
// canceled ctx.
func (p *Permit) Release(ctx context.Context) error {
	if nextOwners := p.s.line.claim(len(p.slots)); len(nextOwners) > 0 {
		if p.s.line.nudge() {
			p.s.wake()
		}
		return p.s.pass(ctx, p, nextOwners)
	}
	err := p.locks.Unlock(ctx)
	p.s.line.released(len(p.slots))
	p.s.wake()
	return err
}

// Release is p.Release for a permit of this semaphore, whichever Semaphore of this name has granted
// it. For any other the error is [ErrOther], and nothing was released.
func (s *Semaphore) Release(ctx context.Context, p *Permit) error {
	switch {
	case p == nil:
		return fmt.Errorf("%w: semaphore %q: the permit is nil", rowlock.ErrConfig, s.name)
	case p.s.name != s.name || p.s.locks != s.locks:
		return fmt.Errorf("%w: it is of %q and was given to %q: release it there", ErrOther, p.s.name, s.name)
	}
	err := p.Release(ctx)
	s.changed()
	return err
}
