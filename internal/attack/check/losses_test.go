package check

import (
	"slices"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/history"
	"github.com/rowlockdb/rowlock/lease"
)

func loss(process string, lock int64, token lease.Token, deadline, told float64) history.Event {
	return call(history.Loss, process, lock, token, deadline, told, history.OK)
}

func processStall(process string, from, to float64) history.Event {
	e := stall(process, from, to)
	e.Act = "process"
	return e
}

func effect(process, op string) history.Event {
	e := call(history.Effect, process, 1, 0, 0, 1, history.OK)
	e.Op = op
	return e
}

func reading(lock int64, token lease.Token, grew int64, k history.Kind, sent float64) history.Event {
	e := call(k, "3", lock, token, sent, sent+1, history.OK)
	e.Value = grew
	return e
}

// The same for what only chaos records.
func TestEachViolationOfAFaultIsSeen(t *testing.T) {
	a, b := grant("1", 1, 1, 0, 1), grant("2", 1, 2, 3, 4)
	left := history.Event{Kind: history.Left, Process: "1", Value: 1}
	for _, c := range []struct {
		name string
		in   Input
		want []Kind
	}{
		{"told at its deadline", Input{Events: []history.Event{a, loss("1", 1, 1, 30, 30.01)}}, nil},
		{"told late", Input{Events: []history.Event{a, loss("1", 1, 1, 30, 31)}}, []Kind{LateLoss}},
		{"told late, with a clock that was set", Input{Events: []history.Event{a, loss("1", 1, 1, 30, 31)}, Clock: true}, nil},
		{"told late by a process that stood still", Input{Events: []history.Event{
			a, loss("1", 1, 1, 30, 31), processStall("1", 29.9, 30.99),
		}}, nil},
		{"told late beside a process that stood still", Input{Events: []history.Event{
			a, loss("1", 1, 1, 30, 31), processStall("2", 29.9, 30.99),
		}}, []Kind{LateLoss}},
		{"granted when it was over", Input{Events: []history.Event{grant("1", 1, 1, 0, 40), loss("1", 1, 1, 30, 40)}}, nil},
		{"goroutines", Input{Events: []history.Event{left}}, []Kind{Goroutines}},
		{"a key that no caller has", Input{
			Events: []history.Event{a, {Kind: history.Kept, Process: "1", Key: "k", Sent: 1e9, Told: 17e9}},
		}, []Kind{KeptKey}},
		{"an effect", Input{Events: []history.Event{effect("1", "x"), effect("2", "x")}, Effects: []history.Row{{Op: "x", Key: "k"}}}, nil},
		{"an effect doubled", Input{Events: []history.Event{effect("1", "x")}, Effects: []history.Row{
			{Op: "y", Key: "k"}, {Op: "x", Key: "k"},
		}}, []Kind{EffectTwice}},
		{"an effect gone", Input{Events: []history.Event{effect("1", "x")}}, []Kind{EffectGone}},
		{"another effect", Input{Events: []history.Event{effect("1", "x")}, Effects: []history.Row{{Op: "y", Key: "k"}}}, []Kind{EffectGone}},
		{"readers between writers", Input{Events: []history.Event{
			a, grant("2", 1, 3, 8, 9), reading(1, 2, 0, history.Shared, 5), reading(2, 2, 0, history.Shared, 5),
		}}, nil},
		{"a reader beside a writer", Input{Events: []history.Event{a, b, reading(1, 2, 0, history.Shared, 3)}}, []Kind{SharedToken}},
		{"a reader from before", Input{Events: []history.Event{a, grant("2", 1, 3, 3, 4), reading(1, 2, 0, history.Shared, 5)}}, []Kind{SharedStale}},
		{"a reader sees a writer", Input{Events: []history.Event{a, reading(1, 2, 1, history.Read, 5)}}, []Kind{Unrepeated}},
		{"held for long after Close", Input{
			Events: []history.Event{a}, Left: []history.Row{{Key: "k", Token: 1}}, Killed: true, Settled: true,
		}, []Kind{Orphan}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []Kind
			for _, v := range All(&c.in).Violations {
				got = append(got, v.Kind)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOverlapsAreBeliefsOfTwoAtOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []history.Event
		want   []time.Duration
	}{
		{"one after the other", []history.Event{grant("1", 1, 1, 0, 1), unlock("1", 1, 1, 2, 3, history.OK), grant("2", 1, 2, 0, 3)}, nil},
		{"told too late", []history.Event{grant("1", 1, 1, 0, 1), loss("1", 1, 1, 30, 35), grant("2", 1, 2, 31, 32)}, []time.Duration{3 * time.Second}},
		{"released in a transaction", []history.Event{
			grant("1", 1, 1, 0, 1), leaving(unlock("1", 1, 1, 5, 6, history.OK)), grant("2", 1, 2, 2, 3),
		}, nil},
		{"killed", []history.Event{grant("1", 1, 1, 0, 1), grant("2", 1, 2, 31, 32)}, nil},
		{"granted when it was over", []history.Event{grant("1", 1, 1, 0, 40), loss("1", 1, 1, 30, 40), grant("2", 1, 2, 31, 32)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Overlaps(c.events); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
