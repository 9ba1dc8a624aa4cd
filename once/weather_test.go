package once_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/once"
)

// Repeats in several processes whose connections break at any operation: a key has one effect if
// any of them was answered, and at most one otherwise; all get the value of that run; and the next
// repeat finds it. ROWLOCK_EVERY_CALL is how many schedules are tried on each database.
func TestRepeatsInBadWeatherHaveOneEffect(t *testing.T) {
	servertest.InBadWeather(t, 1, repeatInBadWeather)
}

func repeatInBadWeather(t *testing.T, s *servertest.Storm) {
	r := newRig(t, s.Env)
	var all []*once.Once
	for range 1 + s.IntN(3) {
		all = append(all, r.open(t, s.Exposed(t), once.Config{
			Reap: -1, NoWait: s.IntN(3) == 0, Wait: time.Second,
		}))
	}
	s.Turn(true)
	var mu sync.Mutex
	told := make(map[string]map[string]int) // what each key's calls were answered
	const fresh = 60 * time.Millisecond     // a new key comes so often, for all
	began, answered := time.Now(), 0
	var callers sync.WaitGroup
	for i := range 2 + s.IntN(6) {
		mine := s.Branch()
		callers.Go(func() {
			for end := time.Now().Add(6 * time.Second); time.Now().Before(end); {
				key := strconv.Itoa(int(time.Since(began)/fresh) - mine.IntN(3))
				value := strconv.FormatUint(mine.Uint64(), 36)
				fails := mine.IntN(6) == 0
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(mine.Int64N(int64(3*time.Second))))
				f := r.effect(key, value)
				if fails {
					f = then(f, func() error { return errors.New("the function has failed") })
				}
				res, err := all[i%len(all)].Do(ctx, once.Request{Key: key}, f)
				cancel()
				mu.Lock()
				if told[key] == nil {
					told[key] = make(map[string]int)
				}
				if err == nil {
					told[key][string(res.Value)]++
					answered++
				}
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	s.Turn(false)
	t.Logf("%d processes: %d answers for %d keys", len(all), answered, len(told))
	clean := r.once(t)
	for key := range told {
		res := do(t, clean, once.Request{Key: key}, r.effect(key, "last"))
		r.wantEffects(t, key, 1)
		if len(told[key]) > 1 || len(told[key]) == 1 && told[key][string(res.Value)] == 0 {
			t.Errorf("%q: the last repeat got %q, those before %v", key, res.Value, told[key])
		}
	}
}
