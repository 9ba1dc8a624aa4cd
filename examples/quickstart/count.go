package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/rowlockdb/rowlock"
)

// count adds 1 to the counter, again and again, until it says CountTo. Other processes do the same.
func (w *worker) count(ctx context.Context) error {
	report := message{Event: "counted", PID: os.Getpid()}
	began := time.Now()
	for more := true; more; {
		var err error
		if more, err = w.addOne(ctx, &report.Waited); err != nil {
			return err
		}
		if more {
			report.Additions++
			time.Sleep(rand.N(10 * time.Millisecond)) // something else, that needs no lock
		}
	}
	report.Took = time.Since(began)
	w.tell(report)
	return nil
}

// addOne reports false when there is nothing left to add.
func (w *worker) addOne(ctx context.Context, longest *time.Duration) (more bool, err error) {
	if !w.Locked {
		return w.increment(ctx)
	}
	asked, done := time.Now(), false
	err = w.locks.Do(ctx, "counter", func(ctx context.Context, _ *rowlock.Lock) (err error) {
		*longest = max(*longest, time.Since(asked))
		more, err = w.increment(ctx)
		done = err == nil
		return err
	})
	if done && !errors.Is(err, rowlock.ErrLost) {
		return more, nil // if the lock could not be given back just now, the client goes on trying
	}
	return more, err
}

// increment reads, works and writes: three steps, and whatever another process writes between the
// first and the last is overwritten. The lock keeps others out meanwhile. (A process that is
// stopped for longer than its lease could still write too late; how to be safe from that too is in
// deposit.go.)
func (w *worker) increment(ctx context.Context) (more bool, err error) {
	n, err := w.db.read(ctx, "counter")
	if err != nil || n >= w.CountTo {
		return false, err
	}
	time.Sleep(time.Millisecond) // the work: a calculation, a call to another service
	return true, w.db.write(ctx, "counter", n+1)
}
