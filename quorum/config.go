package quorum

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
)

// Config has what NewWith needs besides the members. The zero Config has the defaults.
type Config struct {
	// Timeout bounds how long a call waits for members that do not answer, once for each round of
	// requests. Default 2 s. For a lease it is at most a third of the TTL.
	Timeout time.Duration
	// Drift is how much faster a member's clock may run than this process's, as a part of it.
	// Default 0.01. A grant or a renewal is told only if a majority's leases still last for longer
	// than Drift × TTL + 2 ms.
	Drift float64
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Timeout < 0:
		return c, bad("Timeout (%s) is negative; leave it 0 for the default", c.Timeout)
	case c.Timeout > 0 && c.Timeout < time.Millisecond:
		return c, bad("Timeout (%s) is shorter than any round trip; give at least 1ms", c.Timeout)
	case !(c.Drift >= 0 && c.Drift < 0.5): // also if it is not a number
		return c, bad("Drift (%g) must be at least 0 and below 0.5; 0.01 is one part in a hundred",
			c.Drift)
	}
	c.Timeout = cmp.Or(c.Timeout, 2*time.Second)
	c.Drift = cmp.Or(c.Drift, 0.01)
	return c, nil
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: quorum: %s", lease.ErrConfig, fmt.Sprintf(format, args...))
}

// checkMembers refuses what is no quorum. It sends nothing.
func checkMembers(stores []lease.Store) error {
	switch n := len(stores); {
	case n == 0:
		return bad("no stores; give 3 or 5, each on a database of its own")
	case n == 1:
		return bad("1 store is no quorum; give it to rowlock.New, whose locks can then fence")
	case n%2 == 0:
		return bad("%d stores; an even number survives no more failures than %d: "+
			"leave one out or add one", n, n-1)
	}
	for i, s := range stores {
		if err := checkMember(i+1, s); err != nil {
			return err
		}
		for j := range i {
			if adapter.TablesOf(stores[j]) == adapter.TablesOf(s) {
				return bad("stores %d and %d are on the same tables, so that one failure takes two "+
					"votes: give each a database of its own, with tables of its own making",
					j+1, i+1)
			}
		}
	}
	return nil
}

func checkMember(n int, s lease.Store) error {
	if isnil.Value(s) {
		return bad("store %d is nil (%T); leave it out or open it", n, s)
	}
	if _, roams := adapter.As[lease.Roamer](s); roams {
		return bad("store %d is a bridge (%T), whose keys leave its database: give its table", n, s)
	}
	if inner, ok := adapter.As[*Store](s); ok {
		return bad("store %d is a quorum of %d itself; name its members", n, len(inner.members))
	}
	if _, ok := adapter.As[lease.Raiser](s); !ok {
		return bad("store %d (%T) is no lease.Raiser, so that its tokens cannot be brought to the "+
			"quorum's: give the store of rowlock.OpenTable", n, s)
	}
	return nil
}
