package check

import (
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// A failover that loses commits excuses what was told while they were made, and no token.
func TestAFailoverExcusesWhatItHasUndone(t *testing.T) {
	g := grant("1", 1, 1, 0, 1)
	undone := []Span{{From: 10e9, To: 20e9}}
	at := func(sent, told float64) history.Event { return write("1", 1, 1, 1, "op", sent, told, history.OK) }
	effectAt := effect("1", "x")
	effectAt.Sent, effectAt.Told = 12e9, 13e9
	lost := unlock("1", 1, 1, 14, 15, history.Lost)
	for _, c := range []struct {
		name string
		in   Input
		want []Kind
	}{
		{"a write told meanwhile", Input{Events: []history.Event{g, at(12, 13)}, Undone: undone}, nil},
		{"a write told before", Input{Events: []history.Event{g, at(8, 9)}, Undone: undone}, []Kind{LostWrite}},
		{"a write told later", Input{Events: []history.Event{g, at(21, 22)}, Undone: undone}, []Kind{LostWrite}},
		{"a write around it all", Input{Events: []history.Event{g, at(9, 22)}, Undone: undone}, nil},
		{"an effect", Input{Events: []history.Event{g, effectAt}, Undone: undone}, nil},
		{"an effect told before", Input{Events: []history.Event{g, effect("1", "x")}, Undone: undone}, []Kind{EffectGone}},
		{"a lock lost early", Input{Events: []history.Event{g, lost}, Undone: undone}, nil},
		{"a lock lost early without a failover", Input{Events: []history.Event{g, lost}}, []Kind{EarlyLoss}},
		{"a token granted twice", Input{
			Events: []history.Event{g, grant("2", 1, 2, 12, 13), grant("3", 1, 2, 21, 22)}, Undone: undone,
		}, []Kind{Twice}},
		{"a token that falls", Input{
			Events: []history.Event{g, grant("2", 1, 3, 12, 13), grant("3", 1, 2, 21, 22)}, Undone: undone,
		}, []Kind{Falls}},
		{"a reader joins those from before", Input{
			Events: []history.Event{g, grant("2", 1, 3, 12, 13), reading(1, 2, 0, history.Shared, 21)}, Undone: undone,
		}, nil},
		{"a reader from before a grant that stands", Input{
			Events: []history.Event{g, grant("2", 1, 3, 8, 9), reading(1, 2, 0, history.Shared, 21)}, Undone: undone,
		}, []Kind{SharedStale}},
		{"an Unlock after a grant that may be undone", Input{
			Events: []history.Event{g, grant("2", 1, 2, 12, 13), unlock("1", 1, 1, 14, 21, history.OK)}, Undone: undone,
		}, nil},
		{"an Unlock after a grant that stands", Input{
			Events: []history.Event{g, grant("2", 1, 2, 8, 9), unlock("1", 1, 1, 14, 21, history.OK)}, Undone: undone,
		}, []Kind{FalseUnlock}},
		{"a stale write", Input{
			Events:  []history.Event{g, grant("2", 1, 2, 12, 13), at(21, 22)},
			Journal: []history.Row{row("op", "1", 1, 1, 1)}, Counters: map[string]int64{"k": 1}, Undone: undone,
		}, []Kind{StaleWrite}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []Kind
			for _, v := range All(&c.in).Violations {
				got = append(got, v.Kind)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
