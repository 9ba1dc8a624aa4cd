package rowlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// joined is a script that calls late before every join but the first.
type joined struct {
	*script
	joins atomic.Int64
	late  func()
}

func (j *joined) Join(ctx context.Context, tickets []lease.Ticket) error {
	if j.joins.Add(1) > 1 {
		j.late()
	}
	return j.Store.Join(ctx, tickets)
}

// A sign of life that is written after its waiter has gone makes a ticket anew, of nobody.
func TestASignOfLifeThatComesLateLeavesNoTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &joined{script: newScript()}
		cfg := &rowlock.Config{TTL: ttl, Fair: true}
		cfg.Reaper.Off = true
		c := client(t, s, cfg)
		l := take(t, c, "k")
		ctx, cancel := context.WithCancel(t.Context())
		s.late = func() {
			cancel()
			synctest.Wait() // until it has taken its ticket back
		}
		waiting := waitIn(t, ctx, c, "k")
		wantIs(t, "Lock", (<-waiting).err, context.Canceled)
		time.Sleep(time.Second)
		if s.joins.Load() != 2 {
			t.Fatal("there was no sign of life")
		}
		unlock(t, l)
		if isHeld(t, s, "k") {
			t.Error("the key was passed to nobody")
		}
	})
}
