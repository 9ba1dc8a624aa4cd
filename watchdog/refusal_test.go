package watchdog_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

// wantRefusal checks that an error is of this kind, names what is true, in one line, and nothing
// else.
func wantRefusal(t *testing.T, err, kind error, says, not string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("%v, want one that is %v", err, kind)
	}
	text := err.Error()
	if !strings.HasPrefix(text, "rowlock: ") || strings.Contains(text, "\n") {
		t.Errorf("%q is not one line that begins with rowlock:", text)
	}
	if !strings.Contains(text, says) {
		t.Errorf("%q does not say %q", text, says)
	}
	if strings.Contains(text, not) {
		t.Errorf("%q says %q, which is not the cause", text, not)
	}
}

func TestRefusalOfALateAnswerNamesTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(&recorder{store: renewer(swallow)}, watchdog.Config{})
		defer dog.Stop()
		w := newWatch(t, "k")
		time.Sleep(trust)
		err := dog.Keep(&w.Held, w.sent)
		wantRefusal(t, err, lease.ErrLost, "was "+trust.String()+" old", "clock")
		wantRefusal(t, err, lease.ErrLost, "raise TTL", "MaxHold")
	})
}

// The answer came after 6 ms, and the lease cannot be trusted all the same.
func TestRefusalAfterAClockStepNamesTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, dog, _ := probed(t, every)
		granted := newWatch(t, "granted")
		store.by(time.Hour)
		time.Sleep(2 * time.Second)
		err := dog.Keep(&granted.Held, granted.sent)
		wantRefusal(t, err, lease.ErrLost, "clock ran ahead by 1h0m0s", "old when it arrived")
	})
}

func TestRefusalOfAStoppedDogNamesNoDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(&recorder{store: renewer(swallow)}, watchdog.Config{})
		dog.Stop()
		w := newWatch(t, "k")
		time.Sleep(trust) // late as well: the closed client is what the caller can see
		wantRefusal(t, dog.Keep(&w.Held, w.sent), lease.ErrClosed, `lock "k"`, "old when it arrived")
	})
}

func TestRefusalBeyondMaxHoldNamesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(&recorder{store: renewer(swallow)}, watchdog.Config{})
		defer dog.Stop()
		w := newWatch(t, "k")
		w.Until = w.sent.Add(time.Second)
		time.Sleep(2 * time.Second)
		wantRefusal(t, dog.Keep(&w.Held, w.sent), lease.ErrMaxHold, "2s old when it arrived, and MaxHold is 1s", "clock")
	})
}
