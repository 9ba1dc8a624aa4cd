//go:build linux

package etcd_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/movetest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// Keys move out and back under load, while a member of the cluster is killed and restarted, and
// another hangs for longer than an election takes. The client of a hanging member finds another.
func TestKeysMoveWhileMembersDie(t *testing.T) {
	m := startMembers(t)
	testdb.InTurn(t, func(t *testing.T, e *testdb.Env) {
		client := dialTo(t, m.client)
		prefix := fresh(t, client)
		movetest.Run(t, e, movetest.Scene{
			Cluster: func(tb testing.TB) paxosbridge.Cluster { return join(tb, dialTo(tb, m.client), prefix) },
			Disturb: func(ctx context.Context, note func(string)) error {
				pause(ctx, time.Second)
				if i := rand.N(3); rand.N(2) == 0 {
					note(fmt.Sprintf("member %d is killed", i))
					m.kill(i)
					pause(ctx, time.Second)
					m.start(i)
				} else {
					note(fmt.Sprintf("member %d hangs", i))
					m.signal(syscall.SIGSTOP, i)
					pause(ctx, 2*time.Second)
					m.signal(syscall.SIGCONT, i)
				}
				note("all run again")
				m.answers()
				return nil
			},
			Moves: 60,
			// What a stopped member has left unanswered: a step of a move, for MoveTimeout (5 s), then a
			// release that hangs (2 s) and is tried again; and a try of a request (2.5 s). The rest is for a
			// busy machine. Two disturbances in a row last for as long as the machine is slow.
			Whole: 15 * time.Second,
		})
	})
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
