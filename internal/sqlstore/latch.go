package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// LatchRow names one generation of a latch or of a barrier.
type LatchRow struct {
	Kind int // see the constants
	Name []byte
	ID   lease.Owner // of the generation
}

// The kinds of a LatchRow.
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

func (r LatchRow) key(before ...any) []any { return append(before, r.Kind, r.Name) }
func (r LatchRow) id(before ...any) []any  { return append(r.key(before...), Bytes(r.ID)) }

// LatchView is what a latch or a barrier looks like.
type LatchView struct {
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

func (v *LatchView) dest(id *[]byte, remaining *int64) []any {
	return []any{
		id, &v.Generation, &v.Parties, &v.State, &v.Ended, remaining, &v.Counted, &v.Gone, &v.Dead,
	}
}

// LookAtLatch reads a latch or a barrier, whatever generation it is in, by f, which reads one row.
func LookAtLatch(d Texts, r LatchRow, f func(query string, args []any, dest ...any) error) (
	LatchView, error,
) {
	var v LatchView
	var id []byte
	var remaining int64
	section := "latch-look"
	if r.Kind == Barriers {
		section = "barrier-look"
	}
	err := f(d.Text(section), r.key(), v.dest(&id, &remaining)...)
	if errors.Is(err, sql.ErrNoRows) {
		return LatchView{}, nil
	}
	if err != nil {
		return LatchView{}, err
	}
	if len(id) != len(v.ID) {
		return LatchView{}, fmt.Errorf("%w: a generation is called %x", lease.ErrCorrupt, id)
	}
	copy(v.ID[:], id)
	if err := v.check(); err != nil {
		return LatchView{}, err
	}
	v.Remaining = Duration(remaining)
	v.Live, v.Expired = remaining > 0, remaining <= 0
	return v, nil
}

// MaxParties is the largest number of parties.
const MaxParties = 100_000

// check refuses numbers that no latch has. One of no parties would be open before any has come.
func (v *LatchView) check() error {
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

// MakeLatch creates the row, with the id of its first generation, unless there is one.
func MakeLatch(
	ctx context.Context, s *Session, d Texts, r LatchRow, parties int, keep time.Duration,
) error {
	_, err := s.Change(ctx, d.Text("latch-make"), append(r.id(), parties, Micros(keep))...)
	return err
}

// TakeLatch begins another generation in an expired row.
func TakeLatch(
	ctx context.Context, s *Session, d Texts, r LatchRow, parties int, keep time.Duration,
) error {
	_, err := s.Change(ctx, d.Text("latch-take"), r.key(Bytes(r.ID), parties, Micros(keep))...)
	return err
}

// KeepLatch writes to the row if it has that generation. Once that is acknowledged, so is all that
// was read of it before.
func KeepLatch(ctx context.Context, s *Session, d Texts, r LatchRow, keep time.Duration) (
	bool, error,
) {
	n, err := s.Change(ctx, d.Text("latch-keep"), r.id(Micros(keep))...)
	return n > 0, err
}

// ResetLatch begins the generation next, if the row has r's and its state is least or more.
func ResetLatch(
	ctx context.Context, s *Session, d Texts, r LatchRow, next lease.Owner, keep time.Duration,
	least int,
) (bool, error) {
	n, err := s.Change(ctx, d.Text("latch-reset"),
		append(r.id(Bytes(next), Micros(keep)), least)...)
	return n > 0, err
}

// CountLatch writes a party's row, or writes to it. It is false if r's generation is over.
func CountLatch(ctx context.Context, s *Session, d Texts, r LatchRow, party string) (bool, error) {
	n, err := s.Change(ctx, d.Text("latch-count"), r.id([]byte(party))...)
	return n > 0, err
}

// CountLatchIn is CountLatch in a caller's transaction.
func CountLatchIn(
	ctx context.Context, tx lease.Runner, d *Dialect, r LatchRow, party string,
) (bool, error) {
	if !d.ReadsLock {
		n, err := tx.Exec(ctx, d.Text("latch-count"), r.id([]byte(party)))
		return n > 0, err
	}
	v, err := LookAtLatch(d, r, func(query string, args []any, dest ...any) error {
		return tx.QueryOne(ctx, query, args, dest...)
	})
	if err != nil || !v.Live || v.ID != r.ID {
		return false, err
	}
	n, err := tx.Exec(ctx, d.Text("latch-put"), []any{Bytes(r.ID), []byte(party)})
	return n > 0, err
}

// EnterBarrier writes a party's row, alive for ttl, if the barrier is filling.
func EnterBarrier(
	ctx context.Context, s *Session, d Texts, r LatchRow, party string, ttl time.Duration,
) (bool, error) {
	n, err := s.Change(ctx, d.Text("barrier-enter"), r.id([]byte(party), Micros(ttl))...)
	return n > 0, err
}

// BeatBarrier keeps a party alive for ttl. It is false if the party has not entered.
func BeatBarrier(
	ctx context.Context, s *Session, d Texts, id lease.Owner, party string, ttl time.Duration,
) (bool, error) {
	n, err := s.Change(ctx, d.Text("barrier-beat"), Micros(ttl), Bytes(id), []byte(party))
	return n > 0, err
}

// LeaveBarrier writes that a party has left. It is false if the party has not entered, or if the
// barrier is not open.
func LeaveBarrier(ctx context.Context, s *Session, d Texts, r LatchRow, party string) (bool, error) {
	n, err := s.Change(ctx, d.Text("barrier-leave"), append(r.id([]byte(party)), []byte(party))...)
	return n > 0, err
}

// StepBarrier moves the barrier to the next state by a section that does so if it is due.
func StepBarrier(ctx context.Context, s *Session, d Texts, r LatchRow, section string) error {
	_, err := s.Change(ctx, d.Text(section), r.id()...)
	return err
}

// DeadParty returns the first party that is dead, or "".
func DeadParty(ctx context.Context, s *Session, d Texts, id lease.Owner) (string, error) {
	var party []byte
	err := s.QueryRow(ctx, d.Text("barrier-dead"), []any{Bytes(id)}, &party)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return string(party), err
}

// SweepLatches removes up to limit expired latches and barriers.
func SweepLatches(ctx context.Context, s *Session, d Texts, limit int) (int64, error) {
	return s.Change(ctx, d.Text("latch-sweep"), limit)
}

// NextParties returns the next id after one that has parties, and whether it is that of a latch. ok
// is false if there is none.
func NextParties(ctx context.Context, s *Session, d Texts, after lease.Owner) (
	id lease.Owner, live, ok bool, err error,
) {
	var b []byte
	var of int
	err = s.QueryRow(ctx, d.Text("latch-next"), []any{Bytes(after)}, &b, &of)
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
func DropParties(ctx context.Context, s *Session, d Texts, id lease.Owner, limit int) (
	int64, error,
) {
	return s.Change(ctx, d.Text("latch-drop"), Bytes(id), limit)
}
