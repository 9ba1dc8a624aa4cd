package hazard

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// The row is free when the holder of an idle lock says that it is done, long before its lease ends.
func TestTheRowOfAnIdleLockIsFreeAfterUnlock(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		c, next := s.Client(servertest.WithTTL(time.Hour)), s.Client()
		// A shorter one has passed between two calls of a process that gets no turn.
		l := s.Take(c, "k", rowlock.MaxIdle(3*time.Second))
		for range 5 {
			s.Elapse(700 * time.Millisecond)
			s.OK(l.Progress())
		}
		<-l.Context().Done()
		s.WantErr(context.Cause(l.Context()), rowlock.ErrIdle)
		s.WantHeld(next, "k")
		tx := s.Begin(s.Env.DB, nil)
		err := l.Fence(s.Context(), tx)
		s.WantErr(err, rowlock.ErrFenced)
		s.WantErr(err, rowlock.ErrIdle)
		s.OK(tx.Rollback())
		s.WantErr(l.Unlock(s.Context()), rowlock.ErrIdle)
		s.OK(s.Take(next, "k").Unlock(s.Context()))
	})
}

// idling locks a key with a long lease, is stopped, and says how the lock has ended.
func idling(c *servertest.Worker) error {
	for key := c.Next(); key != ""; key = c.Next() {
		l, err := c.Locks.Lock(context.Background(), key, rowlock.TTL(time.Hour),
			rowlock.MaxIdle(time.Second))
		if err != nil {
			return err
		}
		fmt.Println("child: holds")
		for err == nil {
			err = l.Progress() // without a pause: its watchdog may run later than this loop
		}
		unlock := l.Unlock(context.Background())
		fmt.Println("child:", errors.Is(err, rowlock.ErrIdle), errors.Is(unlock, rowlock.ErrIdle))
	}
	return nil
}

// A process that was stopped for longer than its MaxIdle has shown no progress, although it goes on
// with a call of Progress.
func TestAProcessThatWasStoppedShowedNoProgress(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		child := s.Child("idle", "none", 10*time.Second)
		child.Send("k")
		child.Expect("holds")
		s.Elapse(1500 * time.Millisecond) // it works on: a lock without progress would have ended
		child.Pause()
		s.Elapse(1500 * time.Millisecond)
		child.Resume()
		child.Expect("true true")
		s.OK(s.Take(s.Client(), "k").Unlock(s.Context()))
	})
}
