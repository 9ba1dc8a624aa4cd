package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func entryOf(name string, goroutines int, rates ...float64) *entry {
	return &entry{contender: &contender{name: name}, goroutines: goroutines, rates: rates}
}

func TestARatioIsThatOfMediansInItsInterval(t *testing.T) {
	got := ratio(entryOf("a", 1, 100, 20, 60), entryOf("b", 1, 50, 10, 20))
	if got == nil || got.Value != 3 || got.Low > 3 || got.High < 3 {
		t.Errorf("the ratio is %v, not 3", got)
	}
}

func TestWhoHasFailedHasNoRatioAndIsNotTheBest(t *testing.T) {
	failed, slow := entryOf("a", 64, 1000), entryOf("a", 1, 10)
	failed.err = errors.New("too many connections")
	if got := best([]*entry{failed, slow}, named("a")); got != slow {
		t.Errorf("the best is %v, not the one that has not failed", got)
	}
	if got := ratio(failed, slow); got != nil {
		t.Errorf("the ratio of a failure is %v", got)
	}
	if got := ratio(slow, nil); got != nil {
		t.Errorf("the ratio to nobody is %v", got)
	}
}

func TestAMissedTargetIsCountedAndAFailureIsOne(t *testing.T) {
	v := new(verdicts)
	v.atLeast(2, &rig.Interval{Value: 2, Low: 1, High: 3}, "kept")
	v.atLeast(2, &rig.Interval{Value: 1.9, Low: 1, High: 3}, "missed")
	v.atLeast(2, nil, "failed")
	v.atMost(4, 4, "kept")
	v.atMostRatio(0.4, &rig.Interval{Value: 0.5, Low: 0.3, High: 0.6}, "missed")
	var marks []string
	for _, row := range v.rows {
		marks = append(marks, row.mark)
	}
	if want := []string{"MET", "MISSED", "MISSED", "MET", "MISSED"}; !slices.Equal(marks, want) {
		t.Errorf("the marks are %v, not %v", marks, want)
	}
	if v.Err() == nil {
		t.Error("nothing is missed")
	}
	if found := v.rows[0].found; found != "2 [1, 3]" {
		t.Errorf("found is %q, without its interval", found)
	}
}

func TestFourPicksOfFiveAreOfTheFirstFifth(t *testing.T) {
	const n, picks = 1000, 100_000
	few := 0
	for range picks {
		at := pick(n)
		if at < 0 || at >= n {
			t.Fatalf("pick(%d) is %d", n, at)
		}
		if at < n/5 {
			few++
		}
	}
	if share := float64(few) / picks; share < 0.79 || share > 0.81 {
		t.Errorf("%.3f of the picks are of the first fifth", share)
	}
	if at := pick(1); at != 0 {
		t.Errorf("pick(1) is %d", at)
	}
}

func TestAGuardSeesALockThatIsNone(t *testing.T) {
	var g guard
	for range 3 {
		if err := g.visit(); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.check(); err != nil {
		t.Errorf("one after the other: %v", err)
	}
	g.inside.Add(1) // somebody is there
	if err := g.visit(); !errors.Is(err, errShared) {
		t.Errorf("two at once: %v", err)
	}
	g.count.Store(1) // what another has read before, and written after
	if err := g.check(); !errors.Is(err, errShared) {
		t.Errorf("visits that got lost: %v", err)
	}
}
