package latch

import (
	"context"
	"fmt"
	"sync"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/latch/internal/rows"
	"github.com/rowlockdb/rowlock/lease"
)

// Barrier is a double barrier: Enter returns when all parties have entered, and Leave when all that
// have entered have left. Then the next generation begins with the next Enter. It is safe for
// concurrent use by several parties.
//
// From Enter to Leave a party has a heartbeat. If a party stops it, because its process has died,
// was stopped or cut off for Config.Alive, the barrier breaks: every party that waits in Enter or
// Leave, or calls them later, gets a [*BrokenError]. All parties agree: no party of a generation is
// told that the barrier has opened if another is told that it broke before it opened. A broken
// barrier stays so until Reset.
//
// A party that dies and enters again under its name within Config.Alive has not died for the
// others. Keep Config.Alive the same in all processes.
type Barrier struct {
	s       *Latches
	name    string
	parties int

	mu     sync.Mutex
	inside map[string]*stay // by party
}

// stay is a party's time in a barrier.
type stay struct {
	id         lease.Owner
	generation int64
	end        context.CancelFunc // of its heartbeat
	calls      int                // of Enter that have not failed
}

// Name returns the barrier's name.
func (b *Barrier) Name() string { return b.name }

// Parties returns how many parties must enter.
func (b *Barrier) Parties() int { return b.parties }

func (b *Barrier) row(id lease.Owner) rows.Row {
	return rows.Row{Kind: rows.Barriers, Name: []byte(b.name), ID: id}
}

// look reads the barrier as it is now.
func (b *Barrier) look(ctx context.Context) (rows.View, error) {
	v, err := b.s.look(ctx, b.row(lease.Owner{}))
	switch {
	case err != nil:
		return v, err
	case !v.Live:
		return v, notFound(b.name)
	case v.Parties != b.parties:
		return v, &PartiesError{Name: b.name, Parties: b.parties, Found: v.Parties}
	}
	return v, nil
}

// Reset begins the next generation, whatever state this one is in. Parties that wait get a
// [*StaleError], or a [*BrokenError] if the barrier was broken. If several processes reset a broken
// barrier at once, one generation begins for each that has seen another: let one process do it.
func (b *Barrier) Reset(ctx context.Context) error {
	if err := b.s.check(ctx, b.name); err != nil {
		return err
	}
	v, err := b.look(ctx)
	if err == nil {
		err = b.advance(ctx, v, rows.BarrierFilling)
	}
	return err
}

// advance begins the generation after v's, if that is in state least or a later one, and nothing
// has begun it.
func (b *Barrier) advance(ctx context.Context, v rows.View, least int) error {
	row := b.row(v.ID)
	if _, err := b.s.reset(ctx, row, next(v.ID), least); err != nil {
		return err
	}
	b.s.rows.poke(v.ID)
	b.s.hints.announce(row)
	return nil
}

func (b *Barrier) broken(ctx context.Context, id lease.Owner, generation int64) error {
	told := &BrokenError{Name: b.name, Generation: generation}
	var party string // which a read that was left may yet write to
	if b.s.read(ctx, "read", b.name, func(ctx context.Context, on *conn.Session) (err error) {
		party, err = rows.DeadParty(ctx, on, b.s.d, id)
		return err
	}) == nil { // it is the fact that counts
		told.Party = party
	}
	return told
}

// past says what has become of a generation that is over, of which v shows a later one.
func (b *Barrier) past(ctx context.Context, id lease.Owner, generation int64, v rows.View) error {
	switch {
	case !v.Live:
		return notFound(b.name)
	case v.ID == next(id) && v.Ended == rows.BarrierDone:
		return nil
	case v.ID == next(id) && v.Ended == rows.BarrierBroken:
		return b.broken(ctx, id, generation)
	}
	return &StaleError{Name: b.name, Generation: generation, Current: v.Generation}
}

// wait waits for a state of a generation, or for its end.
func (b *Barrier) wait(ctx context.Context, id lease.Owner, generation int64, state int) error {
	last, err := b.s.await(ctx, b.row(id), func(v rows.View) (bool, error) {
		over := !v.Live || v.ID != id
		var past error
		if over {
			past = b.past(ctx, id, generation, v)
		}
		switch {
		case state == rows.BarrierOpen && (over && past == nil || !over && v.State == rows.BarrierDone):
			return true, errOvertaken
		case over:
			return true, past
		case v.State == rows.BarrierBroken:
			return true, b.broken(ctx, id, generation)
		}
		return v.State >= state, nil
	})
	if err != nil && ctx.Err() != nil {
		err = oneline.Join(fmt.Errorf("rowlock: barrier %q has %d of %d parties, of which %d have left", b.name,
			last.Counted, b.parties, last.Gone), err)
	}
	return err
}

// due is the section that takes the barrier to its next state, or "".
func due(row rows.Row, v rows.View) string {
	waits := v.State == rows.BarrierFilling || v.State == rows.BarrierOpen
	switch {
	case row.Kind != rows.Barriers || v.ID != row.ID || !waits:
		return ""
	case v.Dead > 0:
		return "barrier-break"
	case v.State == rows.BarrierFilling && v.Counted >= v.Parties:
		return "barrier-open"
	case v.State == rows.BarrierOpen && v.Gone >= v.Counted:
		return "barrier-done"
	}
	return ""
}
