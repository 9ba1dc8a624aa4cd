package sqlstore

import (
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// An era is above every token that could have been granted before it: the clock grows faster than
// any key is granted.
func TestAnEraIsAboveAllThatWasGrantedBefore(t *testing.T) {
	now := time.Date(2031, 4, 5, 6, 9, 59, 999_000_000, time.UTC)
	start, err := nextEra(now, 0)
	if err != nil {
		t.Fatal(err)
	}
	granted := start + 100_000 // in the next millisecond
	for _, after := range []time.Duration{time.Millisecond, time.Second, EraStep, 24 * time.Hour} {
		next, err := nextEra(now.Add(after), start)
		if err != nil || next <= granted || lease.Epoch(next)%2 != 0 {
			t.Errorf("%s later the era begins after %d, %v; %d was granted", after, next, err, granted)
		}
	}
}

// The start leaves each era room for tokens, and no era reaches into the next.
func TestAnEraHasRoomForTokens(t *testing.T) {
	for since := time.Duration(0); since < EraStep; since += EraStep / 1000 {
		start := EraClock(eraZero.Add(since))
		if left := lease.EpochStart(lease.Epoch(start)+1) - start; left < 1<<39 || lease.Epoch(start) != 0 {
			t.Fatalf("%s after the first step the era begins after %d, with room for %d", since, start, left)
		}
	}
}

// A clock that has gone back, or to before eras, begins the next era that is above.
func TestAnEraIsAboveTheLastThoughTheClockHasGoneBack(t *testing.T) {
	for _, now := range []time.Time{{}, eraZero, eraZero.Add(time.Hour), time.Unix(1<<40, 0)} {
		for _, last := range []int64{lease.EpochStart(100_000), lease.EpochStart(100_000) + 77} {
			if next, err := nextEra(now, last); err != nil || next != lease.EpochStart(100_002) {
				t.Errorf("at %s after %d: %d, %v", now, last, next, err)
			}
		}
	}
	if next, err := nextEra(eraZero, 1); err != nil || next != lease.EpochStart(2) {
		t.Errorf("%d, %v", next, err)
	}
}

// An era at the end of all tokens is refused, and no token overflows.
func TestNoEraBeginsAfterTheLast(t *testing.T) {
	if next, err := nextEra(eraZero, lease.EpochStart(lastEra-2)); err != nil || next != lease.EpochStart(lastEra) {
		t.Errorf("%d, %v", next, err)
	}
	if _, err := nextEra(eraZero, lease.EpochStart(lastEra)); !errors.Is(err, lease.ErrTokenExhausted) {
		t.Errorf("got %v", err)
	}
	if end := eraZero.AddDate(78, 0, 0); lease.Epoch(EraClock(end)) >= lastEra {
		t.Errorf("in %d the eras have ended", end.Year())
	}
}

// A statement that grants is not sent by a session that has learned no era.
func TestNothingIsGrantedWithoutAnEra(t *testing.T) {
	s := &Session{}
	if text, err := s.text("SELECT 1"); err != nil || text != "SELECT 1" {
		t.Errorf("%q, %v", text, err)
	}
	_, err := s.text("UPDATE t SET token = greatest(token, @era) + 1")
	if !errors.Is(err, lease.ErrConfig) || !errors.As(err, new(NotSent)) {
		t.Errorf("got %v", err)
	}
	s.EraAt(5)
	if text, err := s.text("SELECT @era"); err != nil || text != "SELECT 5" || s.Next(3) != 6 || s.Next(7) != 8 {
		t.Errorf("%q, %v", text, err)
	}
}
