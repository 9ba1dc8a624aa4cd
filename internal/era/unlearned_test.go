package era

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// A call that has dialed is told why no era was learned. One that comes later asks anew, because the
// cause may be cured.
func TestARefusalFromLongAgoIsAskedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		holds := refuses(lease.ErrCorrupt)
		if err := holds(0); !IsUnlearned(err) || sqlstore.Judge(nil, err).Class != sqlstore.Refused {
			t.Errorf("at once: %v", err)
		}
		time.Sleep(2 * stale)
		if err := holds(0); !IsUnlearned(err) || sqlstore.Judge(nil, err).Class != sqlstore.Unfit {
			t.Errorf("later: %v", err)
		}
	})
}
