package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// Keys are tables of different sizes in one database.
type Keys struct {
	Rounds  int
	Turn    string
	Callers []int
	Tables  []*Table
}

// Table is what a table of so many rows costs.
type Table struct {
	Rows        int
	Bytes       int64 // of the table on disk
	Index       int64 // of its index, where that is another
	Existing    []Times
	New         []Times
	Walk, Reap  Sweep // of a table without dead rows, and of one with no other; Reap may be zero
	FillSeconds float64

	d       *rig.Database
	clients [2]*rowlock.Client // for keys that are there, and for new ones
	walked  atomic.Int64
	made    atomic.Int64
	unmade  int64 // new keys that are removed again
}

// Times are those of a pair, in ms, by round.
type Times struct {
	Callers int
	Pairs   []float64
}

// keys measures tables of all sizes, which are all there at once.
func (s settings) keys(ctx context.Context, k rig.Kind, p *rig.Progress) (r *Keys, err error) {
	r = &Keys{Rounds: s.rounds, Turn: s.turn.String(), Callers: s.callers}
	defer func() {
		for _, t := range r.Tables {
			err = errors.Join(err, t.close())
		}
	}()
	for _, rows := range s.rows {
		p.Say(k.Name, fmt.Sprintf("making %d rows", rows))
		t, err := makeTable(ctx, k, rows)
		if t != nil {
			r.Tables = append(r.Tables, t)
		}
		if err != nil {
			return nil, err
		}
		p.Step()
	}
	if err := s.sweeps(ctx, r.Tables, walk, p); err != nil {
		return nil, err
	}
	for _, callers := range s.callers {
		if err := s.race(ctx, r.Tables, callers, p); err != nil {
			return nil, err
		}
	}
	return r, s.sweeps(ctx, r.Tables, reap, p)
}

// race gives each table its turns, the order turning with the rounds. The first round only warms.
func (s settings) race(ctx context.Context, all []*Table, callers int, p *rig.Progress) error {
	for _, t := range all {
		t.Existing, t.New = append(t.Existing, Times{Callers: callers}), append(t.New, Times{Callers: callers})
	}
	for round := range s.rounds + 1 {
		for i := range all {
			t := all[(i+round)%len(all)]
			p.Say(t.d.Name, fmt.Sprintf("%d rows, %d callers", t.Rows, callers))
			if err := t.play(ctx, s, callers, round > 0); err != nil {
				return fmt.Errorf("%d rows: %w", t.Rows, err)
			}
		}
		if round > 0 {
			p.Step()
		}
	}
	return nil
}

func makeTable(ctx context.Context, k rig.Kind, rows int) (t *Table, err error) {
	d, err := rig.OpenBeside(ctx, k, fmt.Sprintf("%d_", rows))
	if err != nil {
		return nil, err
	}
	t = &Table{Rows: rows, d: d}
	if t.FillSeconds, err = seconds(func() error { return fill(ctx, d, rows) }); err != nil {
		return t, err
	}
	if t.Bytes, t.Index, err = sizeOf(ctx, d); err != nil {
		return t, err
	}
	for i, strategy := range []rowlock.Strategy{rowlock.Update, rowlock.Insert} {
		t.clients[i], err = rowlock.Open(d.Pool, d.Dialect, &rowlock.Config{
			Strategy: strategy, Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
		})
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

func (t *Table) close() error {
	var errs []error
	for _, c := range t.clients {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(append(errs, t.d.Close())...)
}

// play is a table's turns in a round.
func (t *Table) play(ctx context.Context, s settings, callers int, counts bool) error {
	existing := func() string { return race.Among(series, t.Rows, int(t.walked.Add(1))) }
	fresh := func() string { return t.fresh(t.made.Add(1)) }
	for i, key := range []func() string{existing, fresh} {
		rate, err := rig.Turn(ctx, callers, s.turn, func(ctx context.Context, _, _ int) error {
			l, err := t.clients[i].Lock(ctx, key())
			if err != nil {
				return err
			}
			return l.Unlock(ctx)
		})
		if err != nil {
			return err
		}
		into := []*Times{&t.Existing[len(t.Existing)-1], &t.New[len(t.New)-1]}[i]
		if counts {
			into.Pairs = append(into.Pairs, 1e3*float64(callers)/rate)
		}
	}
	return t.removeNew(ctx)
}

// fresh is the nth new key. It lies behind a key that is there, and neighbors in time are none in the
// table.
func (t *Table) fresh(n int64) string {
	return fmt.Sprintf("%s/%d", race.Among(series, t.Rows, int(n)), n)
}

// removeNew has the small table stay small.
func (t *Table) removeNew(ctx context.Context) error {
	const some = 500
	for made := t.made.Load(); t.unmade < made; {
		var keys []any
		for ; t.unmade < made && len(keys) < some; t.unmade++ {
			keys = append(keys, []byte(t.fresh(t.unmade+1)))
		}
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(keys)), ", ")
		if _, err := t.d.Pool.ExecContext(ctx, t.d.SQL("DELETE FROM {rowlock} WHERE {key} IN ("+marks+")"), keys...); err != nil {
			return err
		}
	}
	return nil
}
