package shown

import (
	"reflect"
	"testing"
	"time"
)

// A process tells that it waits in one table, and what it holds meanwhile in another.
func TestWhatWaitsIsListedOnceForEachName(t *testing.T) {
	row := func(kind int, name, caller string, waited time.Duration, holds ...string) told {
		return told{Waiter{Identity: name, Waited: waited, Alive: time.Second, Holds: holds}, kind, caller}
	}
	got := byName([]told{
		row(0, "fair", "f1", 0), row(0, "fair", "f2", 0), row(0, "fair", "f3", 0),
		row(0, "only", "o1", 0), row(0, "both", "b1", 0),
		row(1, "web-1", "p1", 0), row(1, "web-2", "p2", 0), row(1, "web-2", "p3", 0), row(1, "both", "p4", 0),
		row(2, "web-1", "c1", 5, "a"), row(2, "web-1", "c1", 5, "b"), row(2, "web-1", "c2", 9),
		row(2, "fair", "c3", 7, "x"), row(2, "only", "c4", 8, "y"), row(2, "both", "c5", 6, "z"),
		row(3, "web-1", "p5", 8, "a"), row(3, "web-3", "p6", 4, "c"),
	})
	ticket := func(name string) Waiter { return Waiter{Identity: name, Queued: true, Alive: time.Second} }
	only := ticket("only")
	only.Calls, only.Waited, only.Holds = 1, 8, []string{"y"}
	want := []Waiter{
		ticket("fair"), ticket("fair"), ticket("fair"), only, ticket("both"),
		{Identity: "web-1", Processes: 1, Calls: 2, Waited: 9, Alive: time.Second, Holds: []string{"a", "b"}},
		{Identity: "web-2", Processes: 2, Alive: time.Second},
		{Identity: "both", Processes: 1, Calls: 1, Waited: 6, Alive: time.Second, Holds: []string{"z"}},
		{Identity: "fair", Calls: 1, Waited: 7, Alive: time.Second, Holds: []string{"x"}},
		{Identity: "web-3", Waited: 4, Alive: time.Second, Holds: []string{"c"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("listed as\n%+v, want\n%+v", got, want)
	}
}
