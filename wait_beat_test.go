package rowlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// joined is a script whose joins a test can get in the way of.
type joined struct {
	*script
	join func(ctx context.Context, tickets []lease.Ticket) error
}

func (j *joined) Join(ctx context.Context, tickets []lease.Ticket) error {
	if j.join != nil {
		return j.join(ctx, tickets)
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
		waiting := waitIn(t, ctx, c, "k")
		late := false
		s.join = func(ctx context.Context, tickets []lease.Ticket) error {
			cancel()
			synctest.Wait() // until it has taken its ticket back
			late = true
			return s.Store.Join(ctx, tickets)
		}
		wantIs(t, "Lock", (<-waiting).err, context.Canceled)
		time.Sleep(time.Second)
		if !late {
			t.Fatal("there was no sign of life")
		}
		unlock(t, l)
		if isHeld(t, s, "k") {
			t.Error("the key was passed to nobody")
		}
	})
}
