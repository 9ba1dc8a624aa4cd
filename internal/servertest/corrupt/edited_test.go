package corrupt

import (
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

func opened(t *testing.T) (*testdb.Env, *table.Store) {
	e := testdb.Kinds[0].Open(t)
	store, err := rowlock.OpenTable(e.Pool(t), e.Dialect, servertest.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return e, store.(*table.Store)
}

// The peak says how many slots are read: an allocation of its size would end the process.
func TestALimitWithAPeakThatNoLimitHasIsCorrupt(t *testing.T) {
	e, store := opened(t)
	e.Exec(t, `INSERT INTO {rowlock_limit} (name, slots, peak, generation) VALUES (?, 1, ?, 1)`,
		[]byte("s"), int64(1)<<62)
	l := lease.Limit{Name: "s", Slots: 1}
	req := lease.AcquireRequest{Key: l.Slot(0), Owner: lease.NewOwner(), TTL: ttl}
	_, err := store.AcquireWithin(t.Context(), l, []lease.AcquireRequest{req}, 1)
	if !errors.Is(err, lease.ErrCorrupt) {
		t.Errorf("%v, want ErrCorrupt", err)
	}
}

// An operator may hold a key for centuries by hand: no team holds it.
func TestAKeyHeldUntilAFarYearIsListedAsHeld(t *testing.T) {
	e, store := opened(t)
	e.Exec(t, `INSERT INTO {rowlock} (key, owner, token, acquired_at, expires_at) VALUES (?, ?, 7, 0, 32503680000000)`,
		[]byte("k"), make([]byte, 16))
	held, err := store.Inspect(t.Context(), lease.Filter{Held: true})
	if err != nil || len(held) != 1 || !held[0].Held || held[0].Shared {
		t.Errorf("listed as held: %+v, %v", held, err)
	}
}

// A team's row has that expiry too.
func TestAKeyHeldByHandUntilTheEndOfATeamIsNotGranted(t *testing.T) {
	e, store := opened(t)
	e.Exec(t, `INSERT INTO {rowlock} (key, owner, token, acquired_at, expires_at) VALUES (?, ?, 7, 0, 253370764800000)`,
		[]byte("k"), []byte("an operator's!!!"))
	req := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}
	got, err := store.Acquire(t.Context(), []lease.AcquireRequest{req})
	if err != nil || len(got) != 1 || got[0].Granted {
		t.Errorf("%+v, %v", got, err)
	}
	var token int64
	err = e.DB.QueryRow(e.SQL(`SELECT token FROM {rowlock} WHERE owner IS NOT NULL`)).Scan(&token)
	if err != nil || token != 7 {
		t.Errorf("token %d, %v", token, err)
	}
}

// What is no number is read again by every try, on every connection.
func TestATokenThatIsNoNumberIsCorrupt(t *testing.T) {
	f, store := opened(t)
	f.Exec(t, `INSERT INTO {rowlock} (key, token, acquired_at, expires_at) VALUES (?, 7, 0, 9223372036854775807)`, []byte("k"))
	_, err := store.Inspect(t.Context(), lease.Filter{})
	if !errors.Is(err, lease.ErrCorrupt) {
		t.Errorf("a remaining time that overflows: %v, want ErrCorrupt", err)
	}
}
