package rowlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
)

// mode is how a client waits.
type mode struct {
	fair   bool
	silent bool // without hints
}

func (m mode) String() string {
	name := "unfair"
	if m.fair {
		name = "fair"
	}
	if m.silent {
		return name + " without hints"
	}
	return name
}

func (m mode) set(c *rowlock.Config) {
	c.Fair = m.fair
	if m.silent {
		c.Hints = rowlock.HintsOff
	}
}

var modes = []mode{{}, {silent: true}, {fair: true}, {fair: true, silent: true}}

func modeNamed(name string) mode {
	for _, m := range modes {
		if m.String() == name {
			return m
		}
	}
	return mode{}
}

// eachMode runs f on every database in every mode, the databases side by side. MySQL and MariaDB have no hints to switch off.
func eachMode(t *testing.T, f func(s *scene, m mode)) {
	t.Helper()
	eachScene(t, func(s *scene) {
		s.Parallel()
		for _, m := range modes {
			if m.silent && s.is("mysql", "mariadb") {
				continue
			}
			s.part(m.String(), func(s *scene) { f(s, m) })
		}
	})
}

// waitSlack is what a statement, a scheduler and a race detector may take beyond a time that is bounded.
const waitSlack = 250 * time.Millisecond

// got is the end of a call of Lock that ran beside the test.
type got struct {
	l   *rowlock.Lock
	err error
	at  time.Time
}

// waits calls Lock beside the test, and returns when the call waits. The key must be held.
func (s *scene) waits(ctx context.Context, c *rowlock.Client, key string, opts ...rowlock.Option) <-chan got {
	s.Helper()
	result, standing := make(chan got, 1), make(chan struct{}, 100)
	opts = append(opts, rowlock.OnWait(func(rowlock.Waiting) { standing <- struct{}{} }))
	go func() {
		l, err := c.Lock(ctx, key, opts...)
		result <- got{l, err, time.Now()}
	}()
	arrives(s, scenePatience, standing, "the call to wait")
	return result
}

// granted is the lock that such a call ends with.
func (s *scene) granted(waiting <-chan got) got {
	s.Helper()
	g := arrives(s, scenePatience, waiting, "the grant")
	s.ok(g.err)
	return g
}

// stillWaits sees that such a call is not granted the key while time passes.
func (s *scene) stillWaits(d time.Duration, waiting ...<-chan got) {
	s.Helper()
	s.atLeast(d)
	for i, w := range waiting {
		select {
		case g := <-w:
			s.Fatalf("waiter %d is back: %v, %v", i, g.l, g.err)
		default:
		}
	}
}

// tickets counts the tickets of fair waiters.
func (s *scene) tickets() int64 {
	s.Helper()
	return s.number(`SELECT count(*) FROM {rowlock_queue} WHERE {rank} IS NOT NULL`)
}
