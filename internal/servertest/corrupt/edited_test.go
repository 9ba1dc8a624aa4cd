package corrupt

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

func opened(t *testing.T) (*testdb.Env, *table.Store) {
	e := testdb.Kinds[0].Open(t)
	return e, storeOn(t, e)
}

// listedAsBad fails unless the listing has the keys, and these alone are bad.
func listedAsBad(t *testing.T, store *table.Store, keys ...string) {
	t.Helper()
	found, err := store.Inspect(t.Context(), lease.Filter{})
	if err != nil {
		t.Error(err)
	}
	var bad []string
	for _, r := range found {
		if errors.Is(r.Err, lease.ErrCorrupt) && r.Held {
			bad = append(bad, r.Key)
		} else if r.Err != nil {
			t.Errorf("%+v", r)
		}
	}
	if !slices.Equal(bad, keys) {
		t.Errorf("%q are listed as bad, want %q: %+v", bad, keys, found)
	}
}

func storeOn(t *testing.T, e *testdb.Env) *table.Store {
	store, err := rowlock.OpenTable(e.Pool(t), e.Dialect, servertest.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store.(*table.Store)
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

// An operator may hold a key for centuries by hand: no reader group holds it.
func TestAKeyHeldUntilAFarYearIsListedAsHeld(t *testing.T) {
	e, store := opened(t)
	e.Exec(t, `INSERT INTO {rowlock} (key, owner, token, acquired_at, expires_at) VALUES (?, ?, 7, 0, 32503680000000)`,
		[]byte("k"), make([]byte, 16))
	held, err := store.Inspect(t.Context(), lease.Filter{Held: true})
	if err != nil || len(held) != 1 || !held[0].Held || held[0].Shared {
		t.Errorf("listed as held: %+v, %v", held, err)
	}
}

// A reader group's row has that expiry too.
func TestAKeyHeldByHandUntilTheEndOfAGroupIsNotGranted(t *testing.T) {
	e, store := opened(t)
	e.Exec(t, `INSERT INTO {rowlock} (key, owner, token, acquired_at, expires_at) VALUES (?, ?, 7, 0, 253370764800000)`,
		[]byte("k"), []byte("an operator's!!!"))
	req := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}
	got, err := store.Acquire(t.Context(), []lease.AcquireRequest{req})
	if err != nil || len(got) != 1 || got[0].Granted {
		t.Errorf("%+v, %v", got, err)
	}
	var token lease.Token
	err = e.DB.QueryRow(e.SQL(`SELECT token FROM {rowlock} WHERE owner IS NOT NULL`)).Scan(&token)
	if err != nil || token != 7 {
		t.Errorf("token %d, %v", token, err)
	}
}

// What is no number is read again by every try, on every connection.
func TestATokenThatIsNoNumberIsCorrupt(t *testing.T) {
	f, store := opened(t)
	f.Exec(t, `INSERT INTO {rowlock} (key, token, acquired_at, expires_at) VALUES (?, 7, 0, 9223372036854775807)`, []byte("k"))
	listedAsBad(t, store, "k")
}

// A token below zero becomes 0, which a fence takes for no token: each statement that grants adds
// 1. Or it becomes that of the era, which was granted before.
func TestATokenBelowZeroIsNeverGranted(t *testing.T) {
	owner := lease.Owner{2}
	from := lease.Lease{Key: "s/000", Owner: owner, Token: -1}
	to := lease.AcquireRequest{Key: from.Key, Owner: lease.Owner{3}, TTL: ttl}
	two := []lease.AcquireRequest{to, {Key: "s/001", Owner: lease.Owner{3}, TTL: ttl}}
	limit := lease.Limit{Name: "s", Slots: 2}
	for name, c := range map[string]struct {
		held bool
		ask  func(context.Context, *table.Store) ([]lease.Acquired, error)
	}{
		"acquire": {false, func(ctx context.Context, s *table.Store) ([]lease.Acquired, error) {
			return s.Acquire(ctx, two[:1])
		}},
		"acquire in a batch": {false, func(ctx context.Context, s *table.Store) ([]lease.Acquired, error) {
			return s.Acquire(ctx, two)
		}},
		"acquire all": {false, func(ctx context.Context, s *table.Store) ([]lease.Acquired, error) {
			return s.AcquireAll(ctx, two)
		}},
		"acquire any": {false, func(ctx context.Context, s *table.Store) ([]lease.Acquired, error) {
			return s.AcquireAny(ctx, two, 1)
		}},
		"claim": {false, func(ctx context.Context, s *table.Store) ([]lease.Acquired, error) {
			return s.Claim(ctx, two[:1])
		}},
		"acquire a slot": {false, func(ctx context.Context, s *table.Store) ([]lease.Acquired, error) {
			return s.AcquireWithin(ctx, limit, two, 1)
		}},
		"hand over": {true, func(ctx context.Context, s *table.Store) ([]lease.Acquired, error) {
			return s.HandOver(ctx, []lease.HandOver{{From: from, To: to}})
		}},
		"hand a slot over": {true, func(ctx context.Context, s *table.Store) ([]lease.Acquired, error) {
			h := lease.SlotHandOver{HandOver: lease.HandOver{From: from, To: to}, Generation: 1}
			return s.PassSlots(ctx, limit.Name, []lease.SlotHandOver{h})
		}},
		"pass": {true, func(ctx context.Context, s *table.Store) ([]lease.Acquired, error) {
			if _, err := s.Join(ctx, []lease.Ticket{{AcquireRequest: to, Priority: 1}}); err != nil {
				return nil, err
			}
			out, err := s.Pass(ctx, []lease.Lease{from})
			return []lease.Acquired{{Granted: !out[0].To.IsZero(), Token: out[0].Token, Err: out[0].Err}}, err
		}},
		"read that it was passed": {true, func(ctx context.Context, s *table.Store) ([]lease.Acquired, error) {
			p, err := s.QueuePositions(ctx, []lease.Lease{from})
			return []lease.Acquired{{Granted: p[0].Granted, Token: p[0].Token, Err: p[0].Err}}, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := loose(t)
			s := storeOn(t, e) // before there are rows, so that tokens begin with 1
			var holder any
			if c.held {
				holder = owner[:]
			}
			e.Exec(t, `INSERT INTO {rowlock} (key, owner, token, acquired_at, expires_at) VALUES (?, ?, -1, 0, ?)`,
				[]byte(from.Key), holder, time.Now().Add(time.Minute).UnixMilli())
			e.Exec(t, `INSERT INTO {rowlock_limit} (name, slots, peak, generation) VALUES (?, 2, 2, 1)`, []byte("s"))
			out, err := c.ask(t.Context(), s)
			if len(out) > 0 && out[0].Granted || err != nil && !errors.Is(err, lease.ErrCorrupt) {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
}

// SQLite compares bytes as later than any number, so that the row counts as held, and takes them
// for 0 in a sum.
func TestAnExpiryThatIsNoNumberIsCorrupt(t *testing.T) {
	e := loose(t)
	e.Exec(t, `INSERT INTO {rowlock} (key, owner, token, acquired_at, expires_at) VALUES (?, ?, 7, 0, ?)`,
		[]byte("k"), make([]byte, 16), make([]byte, 16))
	listedAsBad(t, storeOn(t, e), "k")
}

// An operator may want to hold a key for ever. PostgreSQL cannot say what remains of that.
func TestAKeyHeldUntilInfinityIsCorrupt(t *testing.T) {
	e := testdb.Kinds[1].Open(t)
	store := storeOn(t, e)
	e.Exec(t, `INSERT INTO {rowlock} ({key}, owner, token, acquired_at, expires_at) VALUES (?, ?, 7, {now}, 'infinity')`,
		[]byte("k"), []byte("an operator's!!!"))
	req := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}
	got, err := store.Acquire(t.Context(), []lease.AcquireRequest{req})
	if !errors.Is(err, lease.ErrCorrupt) || got[0].Granted {
		t.Errorf("acquire: %+v, %v, want ErrCorrupt", got, err)
	}
	listedAsBad(t, store, "k")
}
