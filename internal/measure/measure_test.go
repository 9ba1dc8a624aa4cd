package measure

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/rowlockdb/rowlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAHandOverIsToACallThatWaitedAtTheRelease(t *testing.T) {
	h := NewHandOvers[string]()
	at := time.Now()
	before, after := at.Add(-time.Second), at.Add(time.Second)
	if _, _, ok := h.Acquired("k", 1, before); ok {
		t.Error("a key that was never released had a hand-over")
	}
	h.Releasing("k", 1, at, "a")
	if got, by, ok := h.Acquired("k", 2, before); !ok || by != "a" || !got.Equal(at) {
		t.Errorf("hand-over %v %q %t, want that of a", got, by, ok)
	}
	if _, _, ok := h.Acquired("k", 2, after); ok {
		t.Error("a call that came after the release had a hand-over")
	}
	if _, _, ok := h.Acquired("k", 3, before); ok {
		t.Error("a release of another process in between was a hand-over")
	}
	if _, _, ok := h.Acquired("j", 2, before); ok {
		t.Error("a release of another key was a hand-over")
	}
}

func TestReleasesThatShareAPlaceAreNotMistaken(t *testing.T) {
	h := NewHandOvers[string]()
	at := time.Now()
	found := 0
	for i := range 10 * remembered {
		h.Releasing(fmt.Sprint(i), 1, at, fmt.Sprint(i))
	}
	for i := range 10 * remembered {
		if _, by, ok := h.Acquired(fmt.Sprint(i), 2, at.Add(-1)); ok {
			if found++; by != fmt.Sprint(i) {
				t.Errorf("%d was released by %s", i, by)
			}
		}
	}
	if found == 0 || found > remembered {
		t.Errorf("%d releases are known, want some and at most %d", found, remembered)
	}
}

func TestClassesAreBounded(t *testing.T) {
	made := 0
	c := NewClasses(func(key string) string { return key }, func(class string) string {
		made++
		return class
	})
	for i := range 10 * mostClasses {
		c.Of(fmt.Sprint(i))
	}
	if made != mostClasses+2 {
		t.Errorf("%d classes were made, want %d, one for none and %s", made, mostClasses, Other)
	}
	if got := c.Of("one more"); got != Other {
		t.Errorf("a class too many is %q, want %q", got, Other)
	}
	if got := c.Of("7"); got != "7" {
		t.Errorf("a class of before is %q, want 7", got)
	}
}

// A metrics library panics at a label that is not UTF-8.
func TestClassesAreShortText(t *testing.T) {
	c := NewClasses(func(key string) string { return key }, func(class string) string { return class })
	if got := c.Of("a\xff"); got != "a�" {
		t.Errorf("%q", got)
	}
	if got := c.Of(strings.Repeat("ä", 1000)); len(got) > longestClass || !utf8.ValidString(got) || strings.Contains(got, "�") {
		t.Errorf("%d bytes, want about %d", len(got), longestClass)
	}
	if got := NewClasses(nil, func(class string) string { return "<" + class + ">" }).Of("k"); got != "<>" {
		t.Errorf("without a classifier the class is %q", got)
	}
}

// A panic in a hook would end the goroutine that renews leases, and with it the process.
func TestAClassifierThatPanicsMakesKeysOther(t *testing.T) {
	c := NewClasses(func(key string) string { return key[9:] }, func(class string) string { return class })
	if got := c.Of("short"); got != Other {
		t.Errorf("the class is %q, want %q", got, Other)
	}
	if got := c.Of("long enough"); got != "gh" {
		t.Errorf("the class after a panic is %q, want gh", got)
	}
}

func TestClassesAreMadeOnceByManyGoroutines(t *testing.T) {
	var made atomic.Int64
	c := NewClasses(func(key string) string { return key }, func(class string) string {
		made.Add(1)
		return class
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 10_000 {
				c.Of(fmt.Sprint(i))
			}
		})
	}
	all.Wait()
	if n := made.Load(); n != mostClasses+2 {
		t.Errorf("%d were made of 10,000 classes, want %d, one for none and %s", n, mostClasses, Other)
	}
}

func TestCauses(t *testing.T) {
	for err, want := range map[error]string{
		rowlock.ErrLost: "lost", rowlock.ErrMaxHold: "max_hold", errors.New("new"): "lost",
		fmt.Errorf("wrapped: %w", rowlock.ErrIdle): "idle",
	} {
		if got := CauseOf(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}
