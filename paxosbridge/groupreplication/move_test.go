package groupreplication_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/movetest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/groupreplication"
)

// Keys move between PostgreSQL and the group under load, while the primary is killed.
func TestKeysMoveWhileThePrimaryDies(t *testing.T) {
	r := newRig(t)
	testdb.InTurn(t, func(t *testing.T, e *testdb.Env) {
		if e.Name != "postgres" {
			// The database makes no difference to the group, and each death takes half a minute.
			return
		}
		killed := false
		movetest.Run(t, e, movetest.Scene{
			Cluster: func(tb testing.TB) paxosbridge.Cluster {
				return r.cluster(groupreplication.Timeout(3 * time.Second))
			},
			Disturb: func(ctx context.Context, note func(string)) error {
				if pause(ctx, time.Second); killed {
					return nil
				}
				killed = true
				primary, _ := r.roles()
				r.signal(primary, syscall.SIGKILL)
				note(fmt.Sprintf("member %d, the primary, is killed", primary))
				pause(ctx, 10*time.Second)
				r.whole()
				return nil
			},
			Moves: 60, Gap: soon + 5*time.Second,
		})
	})
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
