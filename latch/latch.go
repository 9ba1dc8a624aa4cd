package latch

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/latch/internal/rows"
	"github.com/rowlockdb/rowlock/lease"
)

// Latch is one generation of a latch. It opens when its number of parties have counted down, and
// stays open. After a Reset it is stale: its calls return a [*StaleError]. It is safe for
// concurrent use, and has nothing to close.
type Latch struct {
	s          *Latches
	row        rows.Row
	name       string
	generation int64
	parties    int
}

func (s *Latches) latch(name string, v rows.View) *Latch {
	row := rows.Row{Kind: rows.Latches, Name: []byte(name), ID: v.ID}
	return &Latch{s: s, row: row, name: name, generation: v.Generation, parties: v.Parties}
}

// Name returns the latch's name.
func (l *Latch) Name() string { return l.name }

// Generation returns a number that each Reset increases by 1, from 1 on. A latch that was removed
// after Config.Keep and opened again may begin at 1 again, and is stale for all earlier ones.
func (l *Latch) Generation() int64 { return l.generation }

// Parties returns how many parties must count down.
func (l *Latch) Parties() int { return l.parties }

// CountDown counts party down, once: further calls for the same party change nothing. party has 1
// to 255 bytes. A party beyond the number is taken too, and changes nothing.
//
// nil says that the count is committed. If an answer is lost, CountDown repeats until it gets one,
// for 15 s at most. An error that wraps lease.ErrUnknown says that it got none: call it again.
// After any other error the party has not counted down by this call.
func (l *Latch) CountDown(ctx context.Context, party string) error {
	if err := l.s.checkParty(ctx, l.name, party); err != nil {
		return err
	}
	counted, err := l.s.count(ctx, l.row, party)
	if err == nil && !counted {
		err = l.over(ctx)
	}
	if err == nil {
		l.s.counted(l)
	}
	return err
}

// Await returns nil once all parties have counted down in this generation. It returns ErrNotFound
// if there is no such latch any more, a [*StaleError] if it was reset before Await saw it open, and
// an error that wraps ctx.Err() and names the number of parties that lack if ctx ends before.
//
// Any number of waiters of a process cost one poll. Except on SQLite a process that has counted the
// last party down announces it; there, and after a CountDownTx, Await polls, at least each
// Config.Poll. An interruption of the database lengthens the wait and does not end it.
func (l *Latch) Await(ctx context.Context) error {
	if err := l.s.check(ctx, l.name); err != nil {
		return err
	}
	last, err := l.s.await(ctx, l.row, func(v rows.View) (bool, error) {
		if !v.Live || v.ID != l.row.ID {
			return true, l.gone(v)
		}
		return v.Counted >= v.Parties, nil
	})
	if err != nil && ctx.Err() != nil {
		err = oneline.Join(fmt.Errorf("rowlock: latch %q waits for %d of %d parties", l.name,
			max(0, l.parties-last.Counted), l.parties), err)
	}
	return err
}

// Count returns how many parties have yet to count down. It is what was read: a failover of the
// database can undo a count that its party was not told of.
func (l *Latch) Count(ctx context.Context) (int, error) {
	if err := l.s.check(ctx, l.name); err != nil {
		return 0, err
	}
	v, err := l.s.look(ctx, l.row)
	switch {
	case err != nil:
		return 0, err
	case !v.Live || v.ID != l.row.ID:
		return 0, l.gone(v)
	}
	return max(0, v.Parties-v.Counted), nil
}

// Reset begins the next generation, with no party counted down, and returns its latch. This one is
// stale from then on, and whatever waits for it gets a [*StaleError]. If another call has begun the
// next generation already, Reset returns that, so that it can be repeated after a lost answer. If
// there is a later one, it returns a [*StaleError].
//
// A CountDownTx whose transaction is open meanwhile counts for the old generation.
func (l *Latch) Reset(ctx context.Context) (*Latch, error) {
	if err := l.s.check(ctx, l.name); err != nil {
		return nil, err
	}
	after := l.row
	after.ID = next(l.row.ID)
	done, err := l.s.reset(ctx, l.row, after.ID, 0)
	if err == nil && !done {
		done, err = l.s.keep(ctx, after)
	}
	if err == nil && !done {
		err = l.over(ctx)
	}
	if err != nil {
		return nil, err
	}
	l.s.rows.poke(l.row.ID)
	l.s.hints.announce(l.row)
	return &Latch{
		s: l.s, row: after, name: l.name, generation: l.generation + 1, parties: l.parties,
	}, nil
}

// over says why a write has not found the generation.
func (l *Latch) over(ctx context.Context) error {
	v, err := l.s.look(ctx, l.row)
	if err != nil {
		return err
	}
	return l.gone(v)
}

func (l *Latch) gone(v rows.View) error {
	switch {
	case !v.Live:
		return notFound(l.name)
	case v.ID == l.row.ID:
		return fmt.Errorf("%w: latch %q has changed meanwhile: try again", lease.ErrBusy, l.name)
	}
	return &StaleError{Name: l.name, Generation: l.generation, Current: v.Generation}
}
