package semaphore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/semaphore"
)

// TestChildAtWork is the child process.
func TestChildAtWork(t *testing.T) {
	servertest.AtWork(t, map[string]servertest.Job{"work": work, "hold": hold})
}

// joined returns the semaphore under the limit that the test sends.
func joined(c *servertest.Worker) (*semaphore.Semaphore, error) {
	limit, err := strconv.Atoi(c.Next())
	if err != nil {
		return nil, err
	}
	var opts []semaphore.Option
	if c.Table == "in order" {
		opts = append(opts, semaphore.InOrder())
	}
	s, err := semaphore.New(c.Locks, "s", limit, opts...)
	if err == nil {
		_, err = s.Limit(context.Background())
	}
	return s, err
}

// work takes and gives back one slot or two, for ever.
func work(c *servertest.Worker) error {
	s, err := joined(c)
	if err != nil {
		return err
	}
	fmt.Println("child: joined")
	for ctx := context.Background(); ; {
		p, err := s.Acquire(ctx, 1+rand.IntN(2))
		if errors.Is(err, rowlock.ErrConfig) { // the limit is 1
			continue
		}
		// A stopped process may have a row locked for longer than an attempt tries, too, and beside other
		// work a grant may come when most of its lease is over.
		if errors.Is(err, rowlock.ErrBusy) || errors.Is(err, rowlock.ErrUnknown) || errors.Is(err, rowlock.ErrLost) {
			continue
		}
		if err != nil {
			return err
		}
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		// A stopped process may have a row locked for longer than a release tries; the client goes on.
		err = p.Release(ctx)
		if err != nil && !errors.Is(err, rowlock.ErrLost) && !errors.Is(err, rowlock.ErrUnknown) {
			return err
		}
	}
}

// hold takes as many slots as the test says, and keeps them.
func hold(c *servertest.Worker) error {
	s, err := joined(c)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(c.Next())
	if err != nil {
		return err
	}
	p, err := s.Acquire(context.Background(), n)
	if err != nil {
		return err
	}
	fmt.Println("child: holds")
	c.Next()
	return p.Release(context.Background())
}
