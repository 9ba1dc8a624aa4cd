package clienttest

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// departing is a client whose holder unlocks while waiters leave: each waiter leaves as soon as the
// store has handed the key to it, and before the answer has come.
type departing struct {
	*Script
	leave []context.CancelFunc // of the waiters in their order
	fails map[int]bool         // the hand-overs whose outcome is unknown
	made  int
}

func (d *departing) handOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	n := d.made
	d.made++
	answers, err := d.Store.HandOver(ctx, items)
	if d.fails[n] {
		return nil, fmt.Errorf("%w: connection reset", lease.ErrUnknown)
	}
	if n < len(d.leave) {
		d.leave[n]()
	}
	time.Sleep(10 * time.Millisecond)
	return answers, err
}

// A release that fails has the orphan cleaner release what was to be released, and that is not the
// holder's lease any more.
func TestWhatAWaiterLeavesAtItsHandOverIsCleanedUp(t *testing.T) {
	unknown := func() ([]lease.Released, error) {
		return nil, fmt.Errorf("%w: connection reset", lease.ErrUnknown)
	}
	for name, c := range map[string]struct {
		waiters int          // all of them leave
		fails   map[int]bool // hand-overs
		release func() ([]lease.Released, error)
	}{
		"the release of the waiter's lease has an unknown outcome": {1, nil, unknown},
		"the release fails for the item": {1, nil, func() ([]lease.Released, error) {
			return []lease.Released{{Err: ErrDown}}, nil
		}},
		"two waiters leave":                      {2, nil, unknown},
		"the second hand-over is unknown":        {2, map[int]bool{1: true}, nil},
		"the first hand-over is unknown":         {2, map[int]bool{0: true}, nil},
		"the first is unknown, and the release":  {2, map[int]bool{0: true}, unknown},
		"the second is unknown, and the release": {3, map[int]bool{1: true}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewScript()
				d := &departing{Script: s, fails: c.fails}
				s.OnHandOver = d.handOver
				locks := Client(t, s, &rowlock.Config{TTL: time.Hour, Reaper: rowlock.ReaperConfig{Off: true}})
				l := Take(t, locks, "k")
				for range c.waiters {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					d.leave = append(d.leave, cancel)
					go func() {
						if w, err := locks.Lock(ctx, "k"); err == nil {
							_ = w.Unlock(ctx)
						}
					}()
					synctest.Wait()
				}
				failed := c.release == nil
				s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
					if !failed {
						failed = true
						return c.release()
					}
					return s.Store.Release(ctx, leases)
				}
				WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrUnknown)
				for _, leave := range d.leave {
					leave()
				}
				time.Sleep(time.Minute)
				if r := Record(t, s, "k"); r.Held {
					t.Errorf("a minute later the key is held for %v more", r.Remaining)
				}
				if open := locks.Stats().OrphansOpen; open != 0 {
					t.Errorf("%d orphans a minute later", open)
				}
			})
		})
	}
}
