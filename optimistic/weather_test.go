package optimistic_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

// Changes of the user's rows by Update, Retry and Modify on connections that break at any
// operation: each that returned nil was made once, and each of unknown outcome once at most, on
// both rows or on none. ROWLOCK_EVERY_CALL is how many schedules are tried on each database.
func TestChangesInBadWeatherAreMadeOnce(t *testing.T) {
	servertest.InBadWeather(t, 1, changeInBadWeather)
}

func changeInBadWeather(t *testing.T, s *servertest.Storm) {
	tab := accounts(t, s.Env, 3)
	var mu sync.Mutex
	var told, unknown [3]int64 // changes of row 1, of row 2, of both
	count := func(of int, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			told[of]++
		case errors.Is(err, lease.ErrUnknown):
			unknown[of]++
		}
	}
	s.Turn(true)
	var callers sync.WaitGroup
	for range 2 {
		db := s.Exposed(t)
		for range 1 + s.IntN(3) {
			rng := s.Branch()
			callers.Go(func() {
				for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.Int64N(int64(2*time.Second))))
					of := rng.IntN(3)
					switch {
					case of == 2:
						count(of, tab.Modify(ctx, db, []any{1, 2}, func(rows []*account) error {
							rows[0].Balance++
							rows[1].Balance++
							return nil
						}))
					case rng.IntN(2) == 0:
						count(of, tab.Modify(ctx, db, []any{of + 1}, func(rows []*account) error {
							rows[0].Balance++
							return nil
						}))
					default:
						count(of, optimistic.Retry(ctx, func(ctx context.Context) error {
							a, err := tab.Get(ctx, db, of+1)
							if err != nil {
								return err
							}
							a.Balance++
							return tab.Update(ctx, db, &a)
						}))
					}
					cancel()
				}
			})
		}
	}
	callers.Wait()
	s.Turn(false)
	for of := range 2 {
		a := get(t, tab, s.DB, int64(of+1))
		least := told[of] + told[2]
		if most := least + unknown[of] + unknown[2]; a.Balance-100 < least || a.Balance-100 > most || a.Version != a.Balance-99 {
			t.Errorf("row %d: %+v, want %d to %d changes", of+1, a, least, most)
		}
	}
	t.Logf("%d done, %d unknown", told, unknown)
}
