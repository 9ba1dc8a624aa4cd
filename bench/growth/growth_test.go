package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/crew"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/lease"
)

// TestMain lets the test start itself as a process that contends.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == rig.WorkerCommand {
		rig.Main(rig.WorkerCommand, crew.Work)
		return
	}
	os.Exit(m.Run())
}

// onEach runs a test on a table of each database that there is.
func onEach(t *testing.T, rows int, test func(t *testing.T, table *Table)) {
	t.Helper()
	kinds, err := rig.Present("all")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			made, err := makeTable(t.Context(), k, rows)
			if made != nil {
				t.Cleanup(func() { _ = made.close() })
			}
			if err != nil {
				t.Fatal(err)
			}
			test(t, made)
		})
	}
}

func (t *Table) count(test *testing.T) (n int) {
	test.Helper()
	err := t.d.Pool.QueryRowContext(test.Context(), t.d.SQL("SELECT count(*) FROM {rowlock}")).Scan(&n)
	if err != nil {
		test.Fatal(err)
	}
	return n
}

// A walk through keys that are not there would measure what new keys cost.
func TestAWalkFindsEveryKeyThatWasFilledIn(t *testing.T) {
	const rows = 100
	onEach(t, rows, func(t *testing.T, table *Table) {
		for n := range rows {
			l, err := table.clients[0].Lock(t.Context(), race.Among(series, rows, n))
			if err == nil {
				err = l.Unlock(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := table.count(t); n != rows {
			t.Errorf("there are %d rows and not %d: others were made", n, rows)
		}
		if table.Bytes < rows {
			t.Errorf("a table of %d rows has %d bytes", rows, table.Bytes)
		}
	})
}

// Each statement makes a chunk; a million rows take ten.
func TestATableHasAsManyRowsAsItIsFilledWith(t *testing.T) {
	const rows = chunk + 10
	onEach(t, rows, func(t *testing.T, table *Table) {
		if n := table.count(t); n != rows {
			t.Errorf("there are %d rows, not %d", n, rows)
		}
	})
}

func TestATableKeepsItsSizeThroughItsTurns(t *testing.T) {
	const rows = 100
	onEach(t, rows, func(t *testing.T, table *Table) {
		table.Existing, table.New = make([]Times, 1), make([]Times, 1)
		for range 2 {
			if err := table.play(t.Context(), settings{turn: 5 * time.Millisecond}, 2, true); err != nil {
				t.Fatal(err)
			}
		}
		if table.made.Load() == 0 || len(table.New[0].Pairs) != 2 {
			t.Errorf("%d new keys were locked in %v", table.made.Load(), table.New)
		}
		if n := table.count(t); n != rows {
			t.Errorf("there are %d rows, not %d", n, rows)
		}
	})
}

// A walk must leave the table as it is: it is swept before the turns.
func TestAWalkRemovesNothingAndAReapAll(t *testing.T) {
	onEach(t, 300, func(t *testing.T, table *Table) {
		for _, one := range []struct {
			retention time.Duration
			want      int64
		}{{walk, 0}, {reap, 300}} {
			found, err := table.sweep(t.Context(), lease.SweepOptions{Retention: one.retention, Batch: 200}, nil)
			if err != nil || found.Removed != one.want || found.Rows != 300 {
				t.Errorf("after %s: %+v, %v", one.retention, found, err)
			}
		}
	})
}

func TestSizesGrow(t *testing.T) {
	for _, text := range []string{"", "x", "0", "-1", "10,10", "10,1", "1,,2"} {
		if all, err := numbers(text); err == nil {
			t.Errorf("%q is %v", text, all)
		}
	}
	if all, err := numbers("1,4,16"); err != nil || !slices.Equal(all, []int{1, 4, 16}) {
		t.Errorf("1,4,16 is %v, %v", all, err)
	}
}

// measured are figures of which everything can be told.
func measured() *figures {
	load := func(pairs, connections, memory float64) Load {
		return Load{[]float64{pairs, 2 * pairs}, []float64{1, 2}, []float64{connections, connections}, []float64{memory, memory}}
	}
	table := func(rows int, ms float64) *Table {
		times := []Times{{1, []float64{ms, 2 * ms}}}
		return &Table{Rows: rows, Bytes: int64(100 * rows), Existing: times, New: times, Walk: Sweep{Rows: int64(rows), Seconds: 1, Statements: 7}}
	}
	return &figures{
		Keys: Scenes{"sqlite": {Keys: &Keys{Callers: []int{1}, Tables: []*Table{table(1000, 2), table(10_000, 3)}}}},
		Processes: Scenes{"postgres": {Processes: &Processes{Crowds: []*Crowd{
			{Processes: 1, Own: load(100, 3, 50e6), Shared: load(90, 3, 50e6)},
			{Processes: 64, Own: load(200, 192, 995e6), Shared: load(80, 192, 995e6)},
		}}}},
		Held: Scenes{"postgres": {Held: &Held{Crowds: []Holding{
			{Locks: 1000, Statements: 0.2, PerStatement: 500, Client: 0.01},
			{Locks: 1_000_000, Statements: 200, PerStatement: 500, Client: 0.5, Server: 0.8},
			{Locks: 5_000_000, Statements: 900, PerStatement: 500, Client: 0.5, Server: 1.8, Lost: 9, Taking: 2, Holding: 5},
		}}}},
	}
}

func TestThePageHasItsRatiosAndItsArithmetic(t *testing.T) {
	text := pageOf(settings{}, measured())
	for _, want := range []string{
		"| SQLite | 10,000 | 4.50 | 1.50 (1.50–1.50) |",
		"| 64 | 300 | 2.00 (2.00–2.00) |",
		"| 15,000: 3 a process | 75 GB, at 5 MB each |",
		"0.80 cores, at 8 µs a lease",
		"80 million held locks",
		"Here 120 pairs a second",
		"| 9: 2 while all were taken, 3 while they were held, 4 while they were given back |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

func TestWhatWasNotMeasuredIsNotReckonedWith(t *testing.T) {
	all := measured()
	all.Held["postgres"].Held.Crowds[1].Statements = 0
	if text := pageOf(settings{}, all); strings.Contains(text, "On paper, beyond") {
		t.Error("there is arithmetic on what is not known")
	}
}

// A run of one scene keeps what other runs have found, and a failure takes the place of figures.
func TestARunReplacesItsOwnFiguresAndNoOthers(t *testing.T) {
	out, all := t.TempDir(), measured()
	if err := all.write(out); err != nil {
		t.Fatal(err)
	}
	var later figures
	if err := later.read(out); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := later.Held.enter("mysql", settings{}.begin(nil), broken); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	text := pageOf(settings{}, &later)
	for _, want := range []string{"| PostgreSQL | 64 |", "**MySQL failed: broken**", "| PostgreSQL | 1,000,000 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

func TestEachSceneHasItsPicture(t *testing.T) {
	s := settings{out: t.TempDir()}
	if err := report(nil, s, measured()); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(s.out, "growth.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{pictureOfKeys.File, pictureOfProcesses.File, pictureOfHeld.File} {
		drawn, err := os.ReadFile(filepath.Join(s.out, folder, c))
		if err != nil || len(drawn) < 1000 || !strings.Contains(string(page), folder+"/"+c) {
			t.Errorf("%s: %d bytes, %v", c, len(drawn), err)
		}
	}
}
