package wait

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// waitSlack is what a statement, a scheduler and a race detector may take beyond a time that is
// bounded.
const waitSlack = 250 * time.Millisecond

// got is the end of a call of Lock that ran beside the test.
type got struct {
	l   *rowlock.Lock
	err error
	at  time.Time
}

// waits calls Lock beside the test, and returns when the call waits. The key must be held.
func waits(s *servertest.Scene, ctx context.Context, c *rowlock.Client, key string,
	opts ...rowlock.Option,
) <-chan got {
	s.Helper()
	result, standing := make(chan got, 1), make(chan struct{}, 100)
	opts = append(opts, rowlock.OnWait(func(rowlock.Waiting) { standing <- struct{}{} }))
	go func() {
		l, err := c.Lock(ctx, key, opts...)
		result <- got{l, err, time.Now()}
	}()
	servertest.Await(s, servertest.Patience, standing, "the call to wait")
	return result
}

// granted is the lock that such a call ends with.
func granted(s *servertest.Scene, waiting <-chan got) got {
	s.Helper()
	g := servertest.Await(s, servertest.Patience, waiting, "the grant")
	s.OK(g.err)
	return g
}

// stillWaits fails the test if such a call is granted the key while time passes.
func stillWaits(s *servertest.Scene, d time.Duration, waiting ...<-chan got) {
	s.Helper()
	s.Elapse(d)
	for i, w := range waiting {
		select {
		case g := <-w:
			s.Fatalf("waiter %d is back: %v, %v", i, g.l, g.err)
		default:
		}
	}
}

// tickets counts the tickets of fair waiters.
func tickets(s *servertest.Scene) int64 {
	s.Helper()
	return s.Number(`SELECT count(*) FROM {rowlock_queue} WHERE {rank} IS NOT NULL`)
}
