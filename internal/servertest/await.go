package servertest

import (
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
)

const (
	// faultTTL is far longer than any test: what comes free was released, and did not expire.
	LongTTL = 5 * time.Minute
	// freeSoon is how soon what a caller left behind must be free again.
	FreeSoon = 4 * time.Second
	// faultPromptly is how soon a caller who left must be back.
	Promptly = 2 * time.Second
)

// locked returns the lock of a call that was to succeed.
func Locked(tb testing.TB) func(l *rowlock.Lock, err error) *rowlock.Lock {
	return func(l *rowlock.Lock, err error) *rowlock.Lock {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return l
	}
}

func WantErr(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("got error %v, want %v", err, target)
		}
	}
}

// aside runs f beside the test and returns where its error comes.
func Aside(f func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- f() }()
	return result
}

// arrives returns what comes over c, which must come in time.
func Await[T any](tb testing.TB, limit time.Duration, c <-chan T, what string) (v T) {
	tb.Helper()
	select {
	case v = <-c:
	case <-time.After(limit):
		tb.Fatalf("waited %s in vain for %s", limit, what)
	}
	return v
}

// comesTrue asks again and again until ok.
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	late := time.After(Patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			tb.Fatalf("waited %s in vain for %s", Patience, what)
		}
	}
}
