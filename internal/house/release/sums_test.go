package main

import (
	"strings"
	"testing"
	"time"
)

func TestEachDialectHasABoundOfWhatAnApplicationGets(t *testing.T) {
	may, err := bounds(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, database := range dialects {
		bound := may[database]
		for name, n := range map[string]int{
			"got": bound.got, "sources": bound.sources, "tidied": bound.tidied, "more": bound.more, "modules": bound.modules,
		} {
			if n == 0 {
				t.Errorf("%s states no figure %s for %s", sumsFile, name, database)
			}
		}
	}
}

func TestOneFigureMoreIsTooMany(t *testing.T) {
	bound := gain{"a", 1, 2, 3, 4, 5}
	if bound.over(bound) {
		t.Error("what is at its bound is over it")
	}
	for _, g := range []gain{{"a", 2, 2, 3, 4, 5}, {"a", 1, 3, 3, 4, 5}, {"a", 1, 2, 4, 4, 5}, {"a", 1, 2, 3, 5, 5}, {"a", 1, 2, 3, 4, 6}} {
		if !g.over(bound) {
			t.Errorf("%v is not over %v", g, bound)
		}
	}
	if !bound.over(gain{}) {
		t.Error("what has no bound is not refused")
	}
}

// A busy machine says nothing of what a newcomer waits for, and an idle one that is slow does.
func TestTheFirstWriteIsHeldToItsTimeOnAnIdleMachine(t *testing.T) {
	idle, busy := &release{}, &release{busy: 1000}
	if err := idle.inTime(firstWrite); err != nil {
		t.Error(err)
	}
	if err := idle.inTime(firstWrite + time.Second); err == nil || !strings.Contains(err.Error(), "61 s") {
		t.Errorf("too slow, and no more is said than %v", err)
	}
	if err := busy.inTime(firstWrite + time.Second); err != nil {
		t.Error(err)
	}
}

func TestATrialIsDoneAlone(t *testing.T) {
	var did []string
	trials := []trial{
		{"first", func() error { did = append(did, "first"); return nil }},
		{"get", func() error { did = append(did, "get"); return nil }},
	}
	for only, want := range map[string]string{"": "first get", "get": "get", "other": ""} {
		did = nil
		err := (&release{only: only}).all(trials)
		if got := strings.Join(did, " "); got != want || (err != nil) != (want == "") {
			t.Errorf("-only %q did %q, want %q: %v", only, got, want, err)
		}
	}
}
