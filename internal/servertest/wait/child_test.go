package wait

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/servertest"
)

// TestChildAtWork is the child process.
func TestChildAtWork(t *testing.T) {
	servertest.AtWork(t, map[string]servertest.Job{
		"hold": servertest.Hold, "crowd": crowding, "queue": queueing, "pairs": pairing,
	})
}
