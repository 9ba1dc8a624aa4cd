package era

import (
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// later is after all eras.
var later = zero.AddDate(80, 0, 0)

// An era is above every token that could have been granted before it: the clock grows faster than
// any key is granted.
func TestAnEraIsAboveAllThatWasGrantedBefore(t *testing.T) {
	now := time.Date(2031, 4, 5, 6, 9, 59, 999_000_000, time.UTC)
	start, err := next(now, 0, later)
	if err != nil {
		t.Fatal(err)
	}
	granted := start + 100_000 // in the next millisecond
	for _, after := range []time.Duration{time.Millisecond, time.Second, Step, 24 * time.Hour} {
		got, err := next(now.Add(after), start, later)
		if err != nil || got <= granted || lease.Epoch(got)%2 != 0 {
			t.Errorf("%s later the era begins after %d, %v; %d was granted", after, got, err, granted)
		}
	}
}

// The start leaves each era room for tokens, and no era reaches into the next.
func TestAnEraHasRoomForTokens(t *testing.T) {
	for since := time.Duration(0); since < Step; since += Step / 1000 {
		start := Start(zero.Add(since))
		if left := lease.EpochStart(lease.Epoch(start)+1) - start; left < 1<<39 || lease.Epoch(start) != 0 {
			t.Fatalf("%s after the first step the era begins after %d, with room for %d", since, start, left)
		}
	}
}

// A clock that has gone back, or to before eras, begins an era that is above the last.
func TestAnEraIsAboveTheLastThoughTheClockHasGoneBack(t *testing.T) {
	for _, now := range []time.Time{{}, zero, zero.Add(time.Hour), time.Unix(1<<40, 0)} {
		for _, before := range []lease.Token{lease.EpochStart(100_000), lease.EpochStart(100_001) - 9, lease.EpochStart(7)} {
			got, err := next(now, before, later)
			if err != nil || got <= before || lease.Epoch(got)%2 != 0 || lease.Epoch(got) > lease.Epoch(before)+2 && got != Start(now) {
				t.Errorf("at %s after %d: %d, %v", now, before, got, err)
			}
		}
	}
}

// Eras that begin one after the other come back to the clock after it has gone back a little.
func TestErasDoNotRunAwayFromAClockThatHasGoneBack(t *testing.T) {
	now := zero.AddDate(3, 0, 0)
	start := Start(now.Add(time.Minute))
	for range 1000 {
		now = now.Add(2 * time.Second)
		var err error
		if start, err = next(now, start, later); err != nil {
			t.Fatal(err)
		}
	}
	if start != Start(now) {
		t.Errorf("after %s the era begins after %d, and the clock is at %d", 2000*time.Second, start, Start(now))
	}
}

// An era of a clock that was ahead is refused. One that no clock has set is of any time.
func TestAnEraFarAheadOfThisMachinesClockIsCorrupt(t *testing.T) {
	now := zero.AddDate(3, 0, 0)
	for at, ok := range map[time.Time]bool{
		now.Add(25 * time.Hour): false, now.Add(23 * time.Hour): true, now: true, zero.Add(time.Minute): true,
	} {
		if err := check(Start(at), now); ok != (err == nil) || !ok && !errors.Is(err, lease.ErrCorrupt) {
			t.Errorf("an era of %s at %s: %v", at, now, err)
		}
	}
	for _, start := range []lease.Token{-1, 0, least} {
		if err := check(start, time.Time{}); err != nil {
			t.Errorf("%d on a machine whose clock is not set: %v", start, err)
		}
	}
}

// An era at the end of all tokens is refused, and no token overflows.
func TestNoEraBeginsAfterTheLast(t *testing.T) {
	if got, err := next(zero, lease.EpochStart(last-1)-1, later); err != nil || got != lease.EpochStart(last) {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := next(zero, lease.EpochStart(last+1)-1, later); !errors.Is(err, lease.ErrTokenExhausted) {
		t.Errorf("got %v", err)
	}
	if end := zero.AddDate(78, 0, 0); lease.Epoch(Start(end)) >= last {
		t.Errorf("in %d the eras have ended", end.Year())
	}
}

// A start that was written by hand is refused before it is in any token.
func TestAStartThatNoClientWritesIsCorrupt(t *testing.T) {
	for start, ok := range map[lease.Token]bool{
		-1: true, 0: true, 5: true, lease.EpochStart(2): true, lease.EpochStart(last) + 1: true,
		lease.EpochStart(1): false, lease.EpochStart(last + 2): false, 1<<63 - 1: false,
	} {
		if err := check(start, later); ok != (err == nil) || !ok && !errors.Is(err, lease.ErrCorrupt) {
			t.Errorf("%d: %v", start, err)
		}
	}
}
