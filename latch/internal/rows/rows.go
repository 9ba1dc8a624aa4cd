// Package rows is what the statements of a latch and of a barrier do to their rows.
package rows

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Row names one generation of a latch or of a barrier.
type Row struct {
	Kind int // see the constants
	Name []byte
	ID   lease.Owner // of the generation
}

// The kinds of a Row.
const (
	Latches  = 0
	Barriers = 1
)

// The states of a barrier's generation. A latch has state 0.
const (
	BarrierFilling = 0 // parties enter
	BarrierOpen    = 1 // all have entered
	BarrierDone    = 2 // all have left
	BarrierBroken  = 3 // a party has died
)

func (r Row) key(before ...any) []any { return append(before, r.Kind, r.Name) }
func (r Row) id(before ...any) []any  { return append(r.key(before...), conn.Bytes(r.ID)) }

// View is what a latch or a barrier looks like.
type View struct {
	Live       bool // there is one, and it has not expired
	Expired    bool // there is one, and it has expired
	ID         lease.Owner
	Generation int64
	Parties    int
	State      int
	Ended      int // the state that the generation before ended in
	Remaining  time.Duration
	Counted    int // parties that have counted down, or entered
	Gone       int // parties that have left
	Dead       int // parties that have entered, not left, and stopped their heartbeat
}

func (v *View) dest(id *[]byte, remaining *int64) []any {
	return []any{
		id, &v.Generation, &v.Parties, &v.State, &v.Ended, remaining, &v.Counted, &v.Gone, &v.Dead,
	}
}

// LookAt reads a latch or a barrier, whatever generation it is in, by f, which reads one row.
func LookAt(d sqlstore.Texts, r Row, f func(query string, args []any, dest ...any) error) (
	View, error,
) {
	var v View
	var id []byte
	var remaining int64
	section := "latch-look"
	if r.Kind == Barriers {
		section = "barrier-look"
	}
	err := f(d.Text(section), r.key(), v.dest(&id, &remaining)...)
	if errors.Is(err, sql.ErrNoRows) {
		return View{}, nil
	}
	if err != nil {
		return View{}, err
	}
	if len(id) != len(v.ID) {
		return View{}, fmt.Errorf("%w: a generation is called %x", lease.ErrCorrupt, id)
	}
	copy(v.ID[:], id)
	if err := v.check(); err != nil {
		return View{}, err
	}
	v.Remaining = conn.Duration(remaining)
	v.Live, v.Expired = remaining > 0, remaining <= 0
	return v, nil
}

// MaxParties is the largest number of parties.
const MaxParties = 100_000

// check refuses numbers that no latch has. One of no parties would be open before any has come.
func (v *View) check() error {
	if v.Parties < 1 || v.Parties > MaxParties || v.Generation < 1 {
		return fmt.Errorf("%w: generation %d for %d parties: both are at least 1, and there are at most "+
			"%d parties", lease.ErrCorrupt, v.Generation, v.Parties, MaxParties)
	}
	if min(v.State, v.Ended) < BarrierFilling || max(v.State, v.Ended) > BarrierBroken {
		return fmt.Errorf("%w: generation %d is in state %d, and the one before ended in state %d",
			lease.ErrCorrupt, v.Generation, v.State, v.Ended)
	}
	return nil
}

// Generation is one generation of a latch or of a barrier, for statements on a session.
type Generation struct {
	Row
	On   *conn.Session
	Text sqlstore.Texts
}

// Make creates the row, with the id of its first generation, unless there is one.
func (g Generation) Make(ctx context.Context, parties int, keep time.Duration) error {
	_, err := g.changed(ctx, "latch-make", append(g.id(), parties, conn.Micros(keep)))
	return err
}

// Take begins another generation in an expired row.
func (g Generation) Take(ctx context.Context, parties int, keep time.Duration) error {
	_, err := g.changed(ctx, "latch-take",
		g.key(conn.Bytes(g.ID), parties, conn.Micros(keep)))
	return err
}

// Keep writes to the row if it has that generation. Once that is acknowledged, so is all that was
// read of it before.
func (g Generation) Keep(ctx context.Context, keep time.Duration) (bool, error) {
	return g.changed(ctx, "latch-keep", g.id(conn.Micros(keep)))
}

// Reset begins the generation next, if the row has g and its state is least or more.
func (g Generation) Reset(
	ctx context.Context, next lease.Owner, keep time.Duration, least int,
) (bool, error) {
	return g.changed(ctx, "latch-reset",
		append(g.id(conn.Bytes(next), conn.Micros(keep)), least))
}

// Count writes a party's row, or writes to it. It is false if the generation is over.
func (g Generation) Count(ctx context.Context, party string) (bool, error) {
	return g.changed(ctx, "latch-count", g.id([]byte(party)))
}

// Enter writes a party's row, alive for ttl, if the barrier is filling.
func (g Generation) Enter(ctx context.Context, party string, ttl time.Duration) (bool, error) {
	return g.changed(ctx, "barrier-enter", g.id([]byte(party), conn.Micros(ttl)))
}

// Beat keeps a party alive for ttl. It is false if the party has not entered.
func (g Generation) Beat(ctx context.Context, party string, ttl time.Duration) (bool, error) {
	return g.changed(ctx, "barrier-beat",
		[]any{conn.Micros(ttl), conn.Bytes(g.ID), []byte(party)})
}

// Leave writes that a party has left. It is false if the party has not entered, or if the barrier
// is not open.
func (g Generation) Leave(ctx context.Context, party string) (bool, error) {
	return g.changed(ctx, "barrier-leave", append(g.id([]byte(party)), []byte(party)))
}

// Step moves the barrier to the next state by a section that does so if it is due.
func (g Generation) Step(ctx context.Context, section string) error {
	_, err := g.changed(ctx, section, g.id())
	return err
}

func (g Generation) changed(ctx context.Context, section string, args []any) (bool, error) {
	n, err := g.On.Change(ctx, g.Text.Text(section), args...)
	return n > 0, err
}

// CountIn is Generation.Count in a caller's transaction.
func CountIn(
	ctx context.Context, tx lease.Runner, d *sqlstore.Dialect, r Row, party string,
) (bool, error) {
	if !d.ReadsLock {
		n, err := tx.Exec(ctx, d.Text("latch-count"), r.id([]byte(party)))
		return n > 0, err
	}
	v, err := LookAt(d, r, func(query string, args []any, dest ...any) error {
		return tx.QueryOne(ctx, query, args, dest...)
	})
	if err != nil || !v.Live || v.ID != r.ID {
		return false, err
	}
	n, err := tx.Exec(ctx, d.Text("latch-put"), []any{conn.Bytes(r.ID), []byte(party)})
	return n > 0, err
}

// DeadParty returns the first party that is dead, or "".
func DeadParty(ctx context.Context, s *conn.Session, d sqlstore.Texts, id lease.Owner) (string, error) {
	var party []byte
	err := s.QueryRow(ctx, d.Text("barrier-dead"), []any{conn.Bytes(id)}, &party)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return string(party), err
}

// Sweep removes up to limit expired latches and barriers.
func Sweep(ctx context.Context, s *conn.Session, d sqlstore.Texts, limit int) (int64, error) {
	return s.Change(ctx, d.Text("latch-sweep"), limit)
}

// NextParties returns the next id after one that has parties, and whether it is that of a latch. ok
// is false if there is none.
func NextParties(ctx context.Context, s *conn.Session, d sqlstore.Texts, after lease.Owner) (
	id lease.Owner, live, ok bool, err error,
) {
	var b []byte
	var of int
	err = s.QueryRow(ctx, d.Text("latch-next"), []any{conn.Bytes(after)}, &b, &of)
	if errors.Is(err, sql.ErrNoRows) {
		return id, false, false, nil
	}
	if err == nil && len(b) != len(id) {
		// Cut to size, it would be found again and again.
		err = fmt.Errorf("%w: a generation that has parties is called %x", lease.ErrCorrupt, b)
	}
	copy(id[:], b)
	return id, of != 0, err == nil, err
}

// DropParties removes up to limit parties of a generation that is over.
func DropParties(ctx context.Context, s *conn.Session, d sqlstore.Texts, id lease.Owner, limit int) (
	int64, error,
) {
	return s.Change(ctx, d.Text("latch-drop"), conn.Bytes(id), limit)
}
