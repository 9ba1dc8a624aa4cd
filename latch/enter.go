package latch

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/latch/internal/rows"
	"github.com/rowlockdb/rowlock/lease"
)

// Enter has party enter, and returns nil once all parties have entered. party has 1 to 255 bytes.
//
// It returns a [*BrokenError] if a party that has entered dies before all have, and ErrFull if the
// barrier is open for others, or party has left it. If ctx ends before, the error wraps ctx.Err():
// the party counts as entered for Config.Alive, so that it can call Enter again; if it does not,
// the barrier breaks. Enter can be repeated for a party inside, also from another process.
//
// A party that enters after the number is complete and before the barrier is open enters as one
// more, and the others wait for it in Leave.
func (b *Barrier) Enter(ctx context.Context, party string) error {
	if err := b.s.checkParty(ctx, b.name, party); err != nil {
		return err
	}
	for range looks {
		v, err := b.look(ctx)
		if err != nil {
			return err
		}
		if v.State == rows.BarrierDone {
			if err := b.advance(ctx, v, rows.BarrierDone); err != nil {
				return err
			}
			continue
		}
		in, err := b.enter(ctx, v, party)
		switch {
		case err != nil:
			return err
		case in:
			if err := b.entered(ctx, v, party); !errors.Is(err, errOvertaken) {
				return err
			}
		case v.State == rows.BarrierBroken:
			return b.broken(ctx, v.ID, v.Generation)
		case v.State == rows.BarrierOpen:
			return fmt.Errorf("%w: %q: party %q comes too late for generation %d", ErrFull, b.name, party,
				v.Generation)
		}
	}
	return fmt.Errorf("%w: barrier %q changes all the time: is it reset in a loop?", lease.ErrBusy, b.name)
}

// enter writes the party's row if the barrier is filling, or to the row if the party is inside.
func (b *Barrier) enter(ctx context.Context, v rows.View, party string) (bool, error) {
	row, ttl := b.row(v.ID), b.s.cfg.Alive
	switch v.State {
	case rows.BarrierFilling:
		return b.s.changed(ctx, "enter", row.Enter(party, ttl))
	case rows.BarrierOpen:
		return b.s.beat(ctx, row, party)
	}
	return false, nil
}

// errOvertaken: the others have entered and left while the party's row was written.
var errOvertaken = errors.New("overtaken")

// entered begins the heartbeat and waits for the others.
func (b *Barrier) entered(ctx context.Context, v rows.View, party string) error {
	in := b.begin(v, party)
	b.s.rows.poke(v.ID)
	err := b.wait(ctx, v.ID, v.Generation, rows.BarrierOpen)
	if err != nil {
		b.end(party, in, false)
	}
	return err
}

func (s *Latches) beat(ctx context.Context, row rows.Row, party string) (bool, error) {
	return s.changed(ctx, "beat", row.Beat(party, s.cfg.Alive))
}

// begin starts the heartbeat of a party. Calls of Enter for one party share it: the one whose ctx
// ends first would end that of the others, and break the barrier.
func (b *Barrier) begin(v rows.View, party string) *stay {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before := b.inside[party]; before != nil {
		if before.id == v.ID {
			before.calls++
			return before
		}
		before.end()
	}
	ctx, end := context.WithCancel(b.s.stopped)
	in := &stay{id: v.ID, generation: v.Generation, end: end, calls: 1}
	b.inside[party] = in
	b.s.begins(func() {
		row := b.row(in.id)
		for retry.Sleep(ctx, b.s.cfg.Alive/3) {
			in, err := b.s.beat(ctx, row, party)
			if err == nil && !in || errors.Is(err, lease.ErrClosed) {
				return // the generation was removed
			}
		}
	})
	return in
}

// end ends a stay, unless the party has begun another: when it has left, or with the last call.
func (b *Barrier) end(party string, in *stay, left bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if in.calls--; (left || in.calls == 0) && b.inside[party] == in {
		delete(b.inside, party)
		in.end()
	}
}

// Leave has party leave, and returns nil once all parties that have entered have left. It returns a
// [*BrokenError] if one of them has died inside, and ErrNotEntered if party has not entered or the
// barrier has not opened. After Reset it is a [*StaleError], as it is if the next generation is
// over too before this process looks: then all may have left. It can be repeated, also after an
// error, by the same Barrier. Another one, as after a restart, finds the party until the next one
// begins.
func (b *Barrier) Leave(ctx context.Context, party string) error {
	if err := b.s.checkParty(ctx, b.name, party); err != nil {
		return err
	}
	in, err := b.stay(ctx, party)
	if err != nil {
		return err
	}
	left, err := b.s.changed(ctx, "leave", b.row(in.id).Leave(party))
	if err != nil {
		return err
	}
	if !left {
		if err := b.outside(ctx, in, party); err != nil {
			return err
		}
	}
	in.end() // and not the stay, which a repetition needs
	b.s.rows.poke(in.id)
	if err := b.wait(ctx, in.id, in.generation, rows.BarrierDone); err != nil {
		return err
	}
	b.end(party, in, true)
	return nil
}

// stay returns the stay of a party, which this process need not have begun.
func (b *Barrier) stay(ctx context.Context, party string) (*stay, error) {
	b.mu.Lock()
	in := b.inside[party]
	b.mu.Unlock()
	if in != nil {
		return in, nil
	}
	v, err := b.look(ctx)
	if err != nil {
		return nil, err
	}
	return &stay{id: v.ID, generation: v.Generation, end: func() {}}, nil
}

// outside says why a party could not leave, or nil if its generation is over because all have left.
// Where the party is in no more, its heartbeat ends.
func (b *Barrier) outside(ctx context.Context, in *stay, party string) error {
	v, err := b.look(ctx)
	switch {
	case err != nil:
		return err
	case v.ID != in.id:
		in.end()
		return b.past(ctx, in.id, in.generation, v)
	case v.State == rows.BarrierBroken:
		in.end()
		return b.broken(ctx, in.id, in.generation)
	}
	return fmt.Errorf("%w: %q: party %q", ErrNotEntered, b.name, party)
}
