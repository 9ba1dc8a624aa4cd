package crew

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestASharesSumIsThatOfAllRounds(t *testing.T) {
	var all Tally
	all.Add([]Answer{{Pairs: 10, Waits: []int64{1, 2}}, {Pairs: 0}}, time.Second)
	all.Add([]Answer{{Pairs: 20, Waits: []int64{9}}, {Pairs: 10}}, 2*time.Second)
	if least, most := all.Shares(); least != 0.5 || most != 1.5 {
		t.Errorf("the shares are %v and %v, not 0.5 and 1.5", least, most)
	}
	if all.Rates[0] != 10 || all.Rates[1] != 15 {
		t.Errorf("the rates are %v", all.Rates)
	}
	if got := all.Wait(1); got != 9*time.Microsecond {
		t.Errorf("the longest wait is %s", got)
	}
}

// starved is a locker that never gets the key.
type starved struct{}

func (starved) lock(ctx context.Context, _ int, _ string) (func() error, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (starved) close() error { return nil }

func TestAProcessThatStarvesHasWaited(t *testing.T) {
	// One that begins in the second half of its turn, as on a busy machine, has not waited.
	for turn := 20 * time.Millisecond; ; turn *= 2 {
		a, err := contend(t.Context(), starved{}, Task{Goroutines: 2, For: turn})
		if err != nil || a.Pairs != 0 {
			t.Fatalf("%d pairs: %v", a.Pairs, err)
		}
		if len(a.Waits) == 2 && min(a.Waits[0], a.Waits[1]) >= (turn/2).Microseconds() {
			return
		}
		if turn > 5*time.Second {
			t.Fatalf("the waits are %v, not two of %s", a.Waits, turn)
		}
	}
}

// broken is a locker that fails.
type broken struct{ starved }

var errBroken = errors.New("broken")

func (broken) lock(context.Context, int, string) (func() error, error) { return nil, errBroken }

func TestAFailureWithinATurnIsNoEndOfIt(t *testing.T) {
	if _, err := contend(t.Context(), broken{}, Task{Goroutines: 1, For: time.Minute}); !errors.Is(err, errBroken) {
		t.Errorf("the error is %v", err)
	}
}
