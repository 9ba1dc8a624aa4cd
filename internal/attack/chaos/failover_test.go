//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/check"
	"github.com/rowlockdb/rowlock/internal/attack/fight"
	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// A fault that repeats has rounds until it has struck often enough, and no other has more than one
// when the time is over.
func TestFailoversAreRepeatedUntilThereAreEnough(t *testing.T) {
	once, again := &fault{name: "reply"}, &fault{name: "failover-sync", repeats: true}
	s, able := &summary{settings: settings{times: 5}}, []*fault{once, again}
	for n, want := range []*fault{once, again, again, nil} {
		got := s.due("postgres", able, n, true)
		if got != want {
			t.Fatalf("round %d: %v, want %v", n, got, want)
		}
		if short := s.enough("postgres", able) != nil; short != (n < 3) {
			t.Errorf("round %d: too few: %v", n, short)
		}
		if got != nil {
			s.add(&found{database: "postgres", fault: got.name, struck: 3, report: new(check.Report), totals: fight.Totals{}})
		}
	}
	s.line("postgres", again.name).Struck = 0
	s.line("postgres", again.name).Failed = 1
	if got := s.due("postgres", able, 9, true); got != nil {
		t.Errorf("a fault that cannot be run is due again: %s", got.name)
	}
}

func TestHoldersFromBeforeAFailoverAreCounted(t *testing.T) {
	call := func(k history.Kind, lock int64, sent, told int64, r history.Result) history.Event {
		return history.Event{Kind: k, Process: "1", Lock: lock, Sent: sent, Told: told, Result: r}
	}
	f := failover{from: 50, killed: 100, ready: 200, lost: true}
	got := f.judge([]history.Event{
		call(history.Grant, 1, 10, 20, history.OK), call(history.Grant, 2, 10, 20, history.OK),
		call(history.Write, 1, 210, 220, history.OK), call(history.Write, 2, 210, 220, history.Lost),
		call(history.Write, 2, 90, 220, history.Lost),  // begun before
		call(history.Write, 1, 1001, 1002, history.OK), // after the next failover
		call(history.Grant, 3, 90, 230, history.OK),    // may be the old primary's
		call(history.Grant, 4, 110, 250, history.OK),   // the first of the new one
		call(history.Write, 4, 260, 270, history.OK),   // a new holder's
		call(history.Grant, 5, 300, 310, history.Held), // no grant
		call(history.Grant, 6, 1001, 1002, history.OK), // the next primary's
		call(history.Grant, 7, 900, 1002, history.OK),  // perhaps too
	}, 1000)
	if want := (standing{Lost: true, Next: 50 * time.Nanosecond, Kept: 1, Refused: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
