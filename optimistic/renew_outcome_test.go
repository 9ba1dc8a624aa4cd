package optimistic

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// A lease that is alive after the update, but for less long than the update would have given it,
// was not extended by it: the server's clock may have been set back after the update had found it
// expired.
func TestALeaseThatIsAliveIsNotThereforeExtended(t *testing.T) {
	for name, c := range map[string]struct {
		remaining, least time.Duration
		want             lease.RenewOutcome
	}{
		"extended":        {30 * time.Second, 29 * time.Second, lease.Extended},
		"alive by chance": {time.Second, 29 * time.Second, lease.Busy},
		"expired":         {-time.Second, 29 * time.Second, lease.Lost},
		"a slow read":     {time.Second, -time.Second, lease.Extended},
	} {
		if got := outcome(nil, c.remaining, c.least, 0).Outcome; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
