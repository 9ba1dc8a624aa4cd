package fault

import (
	"context"
	"database/sql"
	"io"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

// Calls of every kind by callers of up to three clients, on the tables or on a store of package
// optimistic or forupdate, whose connections break at any operation: it is not sent, or its answer
// is lost or late, or it arrives when the caller has tried again. Some clients are closed meanwhile.
// Soon after the last Unlock all keys are free, and have no waiter left, long before any lease or
// ticket ends, unless a Close has failed. ROWLOCK_EVERY_CALL is how many schedules are tried on each
// database.
func TestCallsOfEveryKindOnBadConnections(t *testing.T) {
	servertest.InBadWeather(t, 2, everyCall)
}

func everyCall(t *testing.T, s *servertest.Storm) {
	on, fair, strategy := "tables", s.IntN(2) == 0, servertest.Strategies[s.IntN(2)]
	if n := s.IntN(4); n == 0 || n == 1 && s.Kind.Name != "sqlite" {
		on, fair = []string{"optimistic", "forupdate"}[n], false
	}
	config := func(c *rowlock.Config) { c.Fair, c.Strategy = fair, strategy }
	var clients []*rowlock.Client
	for range 1 + s.IntN(3) {
		clients = append(clients, openOn(t, on, s.Exposed(t), s.Env, func(c *rowlock.Config) {
			config(c)
			c.Hints = []rowlock.Hints{rowlock.HintsOn, rowlock.HintsOff}[s.IntN(2)]
			c.HandOvers = s.IntN(4)
			if on == "tables" && s.IntN(2) == 0 {
				servertest.WithSweep(100 * time.Millisecond)(c)
			}
		}))
	}
	s.Turn(true)
	p := &clienttest.EveryCall{
		TB: t, Keys: []string{"a", "b", "c", "d"}, Hold: 500 * time.Millisecond, Lease: time.Minute,
	}
	const d = 10 * time.Second
	closed := clienttest.CloseSome(clients, s.Rand, d)
	p.Play(clients, 2+s.IntN(6), s.Rand, d)
	failed := closed()
	t.Logf("%s, fair %t, %s, %d clients: %d grants; Close: %v", on, fair, strategy, len(clients), p.Granted(), failed)
	s.Turn(false)
	if failed != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), servertest.FreeSoon)
	defer cancel()
	other := openOn(t, on, s.DB, s.Env, config)
	for _, key := range p.Keys {
		if l, err := other.Lock(ctx, key); err != nil {
			t.Errorf("%q is locked after the last Unlock: %v", key, err)
		} else if err := l.Unlock(ctx); err != nil {
			t.Error(err)
		}
	}
}

// openOn opens a client on the tables, or on a store.
func openOn(
	t *testing.T, on string, db *sql.DB, e *testdb.Env, change func(*rowlock.Config),
) *rowlock.Client {
	var store interface {
		lease.Store
		io.Closer
	}
	var err error
	switch on {
	case "optimistic":
		store, err = optimistic.New(db, e.Dialect)
	case "forupdate":
		store, err = forupdate.New(db, e.Dialect)
	default:
		return servertest.Open(t, db, e, change)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := rowlock.New(store, servertest.LongConfig(change))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = store.Close()
	})
	return c
}
