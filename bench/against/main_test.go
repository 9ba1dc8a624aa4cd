package main

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/crew"
	"github.com/rowlockdb/rowlock/bench/internal/held"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// TestMain lets the test start itself as a process that contends.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == rig.WorkerCommand {
		rig.Main(rig.WorkerCommand, crew.Work)
		return
	}
	os.Exit(m.Run())
}

func onSQLite(t *testing.T) *rig.Database {
	t.Helper()
	kinds, err := rig.Present("sqlite")
	if err != nil {
		t.Fatal(err)
	}
	d, err := rig.Open(t.Context(), kinds[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestAWayThatFailsLeavesTheOthersTheirTurns(t *testing.T) {
	d := onSQLite(t)
	s := settings{rounds: 2, contest: 50 * time.Millisecond}
	one := &scene{processes: 2, goroutines: 1}
	one.enter([]crew.Way{
		{Name: nameUpdate, Kind: crew.Rowlock, Series: 'A'},
		{Name: "none", Kind: "none", Series: 'B'},
		{Name: wayRaw, Kind: crew.Raw, Pause: time.Millisecond, Series: 'C'},
	})
	if err := d.MakeFree(t.Context(), one.keys(), 0); err != nil {
		t.Fatal(err)
	}
	if err := s.play(t.Context(), d, new(others), one, rig.NewProgress(1)); err != nil {
		t.Fatal(err)
	}
	for _, r := range one.runs {
		if failed := r.err != nil; failed != (r.Name == "none") {
			t.Errorf("%s: %v", r.Name, r.err)
		}
		if r.err == nil && len(r.Rates) != s.rounds {
			t.Errorf("%s: %d turns, not %d", r.Name, len(r.Rates), s.rounds)
		}
	}
	if err := failures([]*result{{kind: d.Kind, scenes: []*scene{one}}}); err == nil {
		t.Error("the run has not failed")
	}
}

func TestAWorkloadThatFailsLeavesTheOthersTheirResults(t *testing.T) {
	s := settings{parts: map[string]bool{onFree: true, onHeld: true}}
	r := new(result)
	broken, ran := errors.New("broken"), false
	r.each(s, rig.NewProgress(2), []part{
		{onFree, func(*rig.Progress) error { return broken }},
		{onHot, func(*rig.Progress) error { t.Error("nobody asked for it"); return nil }},
		{onHeld, func(*rig.Progress) error { ran = true; return nil }},
	})
	if !ran {
		t.Error("the next workload did not run")
	}
	if err := failures([]*result{r}); !errors.Is(err, broken) {
		t.Errorf("the run's error is %v", err)
	}
}

func TestALostLockMissesItsTarget(t *testing.T) {
	for lost, want := range map[int]string{0: "MET", 1: "MISSED"} {
		v := new(verdicts)
		v.rest(settings{}, &result{held: &held.Cost{Locks: 10, Lost: lost}})
		i := slices.IndexFunc(v.rows, func(row verdict) bool { return strings.HasSuffix(row.what, ": lost") })
		if i < 0 || v.rows[i].mark != want {
			t.Errorf("%d lost: %v", lost, v.rows)
		}
	}
}

// A short run fails for what no load of the machine changes, and for nothing else.
func TestAShortRunSeesWhatAPairSendsAllocatesAndLoses(t *testing.T) {
	s := settings{scale: 8}
	with := func(sent, crowd, objects float64, lost int) []*result {
		of := func(goroutines int, trips float64) *entry {
			e := entryOf(nameUpdate, goroutines, 1)
			e.costs = []rig.Cost{{Trips: trips}}
			return e
		}
		return []*result{{
			kind: rig.Kind{Name: "postgres"}, held: &held.Cost{Lost: lost},
			free:   []*entry{of(128, crowd)},
			allocs: map[string]alone{nameUpdate: {race.Allocation{Objects: objects}, sent}},
		}}
	}
	for what, c := range map[string]struct {
		all   []*result
		wrong bool
	}{
		"as it is":                    {with(2.01, 0.1, 25, 0), false},
		"not known, as on SQLite":     {with(0, math.NaN(), 25, 0), false},
		"a third round trip":          {with(3, 0.1, 25, 0), true},
		"a crowd that is not batched": {with(2, 2, 25, 0), true},
		"twice the allocations":       {with(2, 0.1, 60, 0), true},
		"a lost lock":                 {with(2, 0.1, 25, 1), true},
	} {
		if err := exceeded(s, c.all); (err != nil) != c.wrong {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestChartsOfEarlierRunsAreRemovedAndNothingElse(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"old.svg", "new.svg", "results.md"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeOld(folder, []string{"new.svg"}); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("left are %v: %v", left, err)
	}
}

// A relaxed release that rowlock does not have is neither drawn nor met.
func TestNoRelaxedReleaseIsNoFigure(t *testing.T) {
	all := []*result{{kind: rig.Kind{Name: "postgres"}, free: []*entry{entryOf(nameUpdate, 1, 100)}}}
	if charts, err := drawReleases(t.TempDir(), settings{}, all); err != nil || charts != nil {
		t.Errorf("drawn are %v: %v", charts, err)
	}
	v := new(verdicts)
	v.relaxed(1.1, nil, "postgres")
	if v.rows[0].mark != "MISSED" || v.rows[0].found != "there is none" {
		t.Errorf("the verdict is %v", v.rows[0])
	}
}

// Every database has kinds of keys. Those without relaxed releases have nothing to compare.
func TestOnlyWhatCanRelaxStandsInTheChartOfReleases(t *testing.T) {
	folder := t.TempDir()
	var all []*result
	for _, name := range []string{"postgres", "mysql"} {
		of := func(n int) []*entry { return []*entry{entryOf(nameUpdate, n, 100), entryOf(nameRelaxed, n, 200)} }
		all = append(all, &result{kind: rig.Kind{Name: name}, free: of(1), keys: of(64)})
	}
	if _, err := drawKeys(folder, settings{scale: 1}, all); err != nil {
		t.Fatal(err)
	}
	if _, err := drawReleases(folder, settings{}, all); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{"keys.svg": true, "releases.svg": false} {
		drawn, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil || strings.Contains(string(drawn), "MySQL") != want {
			t.Errorf("%s has MySQL: %t; %v", file, !want, err)
		}
	}
}
