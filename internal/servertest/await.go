package servertest

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
)

const (
	// LongTTL is far longer than any test: a key that becomes free was released, and did not expire.
	LongTTL = 5 * time.Minute
	// FreeSoon is how soon a key must be free again after its caller left: long before LongTTL, and
	// what a machine needs that has other work.
	FreeSoon = 30 * time.Second
	// Promptly is how soon a canceled call must return, which otherwise waits for what the test holds
	// up.
	Promptly = 15 * time.Second
)

// Locked returns the lock of a call that must succeed. It is not forgotten before the test ends.
func Locked(tb testing.TB) func(l *rowlock.Lock, err error) *rowlock.Lock {
	return func(l *rowlock.Lock, err error) *rowlock.Lock {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { runtime.KeepAlive(l) })
		return l
	}
}

// WantErr fails the test unless err is all of targets.
func WantErr(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("got error %v, want %v", err, target)
		}
	}
}

// Aside runs f beside the test and returns the channel of its error.
func Aside(f func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- f() }()
	return result
}

// Await returns the next value of c, which must arrive within limit.
func Await[T any](tb testing.TB, limit time.Duration, c <-chan T, what string) (v T) {
	tb.Helper()
	select {
	case v = <-c:
	case <-time.After(limit):
		tb.Fatalf("waited %s in vain for %s", limit, what)
	}
	return v
}

// AtOnce fails the test if what f measures is more than limit each of five times: what waits for a
// row or for a timeout is late each time, and a machine that has other work is not.
func AtOnce(tb testing.TB, limit time.Duration, what string, f func() (took time.Duration)) {
	tb.Helper()
	for try := 1; ; try++ {
		switch took := f(); {
		case took <= limit:
			return
		case try == 5:
			tb.Errorf("%s took %s and was late each of %d times, want at most %s", what,
				took.Round(time.Millisecond), try, limit)
			return
		}
	}
}

// Eventually waits until ok returns true.
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
