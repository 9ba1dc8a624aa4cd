package deadlock

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// Callers of up to three clients that ask for keys within the locks of others, in any order: each
// cycle is broken. ROWLOCK_EVERY_CALL is how many schedules are tried on each database.
func TestNestedCallsInAnyOrder(t *testing.T) {
	servertest.InBadWeather(t, 1, func(t *testing.T, s *servertest.Storm) {
		fair := s.IntN(2) == 0
		n := &clienttest.Nest{
			T: t, Keys: []string{"a", "b", "c", "d"}, Share: s.IntN(2) == 0, Pause: 200 * time.Millisecond,
		}
		var clients []*rowlock.Client
		for range 1 + s.IntN(3) {
			clients = append(clients, servertest.Open(t, s.Pool(t), s.Env, func(c *rowlock.Config) { c.Fair = fair }))
		}
		granted := n.Play(clients, s.Rand, 6)
		t.Logf("fair %t, share %t, %d clients: %d grants", fair, n.Share, len(clients), granted)
	})
}
