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
	ID         lease.Owner
	Generation int64
	Parties    int // 0 if there is none
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
	v.Live = remaining > 0
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

// Change is a statement that writes to one generation of a latch or of a barrier.
type Change struct {
	Row
	section string
	args    []any
}

// Run reports whether the statement has found its row.
func (c Change) Run(ctx context.Context, on *conn.Session, d sqlstore.Texts) (bool, error) {
	n, err := on.Change(ctx, d.Text(c.section), c.args...)
	return n > 0, err
}

// Make creates the row, with the id of its first generation, unless there is one.
func (r Row) Make(parties int, keep time.Duration) Change {
	return Change{r, "latch-make", append(r.id(), parties, conn.Micros(keep))}
}

// Take begins another generation in an expired row.
func (r Row) Take(parties int, keep time.Duration) Change {
	return Change{r, "latch-take", r.key(conn.Bytes(r.ID), parties, conn.Micros(keep))}
}

// Keep writes to the row if it has that generation. Once that is acknowledged, so is all that was
// read of it before.
func (r Row) Keep(keep time.Duration) Change {
	return Change{r, "latch-keep", r.id(conn.Micros(keep))}
}

// Reset begins the generation next, if the row has r's and its state is least or more.
func (r Row) Reset(next lease.Owner, keep time.Duration, least int) Change {
	return Change{r, "latch-reset", append(r.id(conn.Bytes(next), conn.Micros(keep)), least)}
}

// Count writes a party's row, or writes to it. It finds none if the generation is over.
func (r Row) Count(party string) Change { return Change{r, "latch-count", r.id([]byte(party))} }

// Enter writes a party's row, alive for ttl, if the barrier is filling.
func (r Row) Enter(party string, ttl time.Duration) Change {
	return Change{r, "barrier-enter", r.id([]byte(party), conn.Micros(ttl))}
}

// Beat keeps a party alive for ttl. It finds none if the party has not entered, or has left.
func (r Row) Beat(party string, ttl time.Duration) Change {
	return Change{r, "barrier-beat", []any{conn.Micros(ttl), conn.Bytes(r.ID), []byte(party)}}
}

// Leave writes that a party has left. It finds none if the party has not entered, or if the barrier
// is not open.
func (r Row) Leave(party string) Change {
	return Change{r, "barrier-leave", append(r.id([]byte(party)), []byte(party))}
}

// Step moves the barrier to the next state by a section that does so if it is due.
func (r Row) Step(section string) Change { return Change{r, section, r.id()} }

// CountIn is Row.Count in a caller's transaction.
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

// DeadParty returns the party that has died first, or "".
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
