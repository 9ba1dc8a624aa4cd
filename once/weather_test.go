package once_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/once"
)

// Repeats in several processes whose connections break at any operation: a key has one effect if
// any of them was answered, and at most one otherwise; all get the value of that run; and the next
// repeat finds it. ROWLOCK_EVERY_CALL is how many schedules are tried on each database.
func TestRepeatsInBadWeatherHaveOneEffect(t *testing.T) {
	schedules := servertest.FromEnvironment("ROWLOCK_EVERY_CALL", 1)
	each(t, func(t *testing.T, r *rig) {
		for range schedules {
			seed := rand.Uint64()
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				repeatInBadWeather(t, r, rand.New(rand.NewPCG(seed, 43)))
			})
		}
	})
}

func repeatInBadWeather(t *testing.T, r *rig, rng *rand.Rand) {
	prefix := strconv.FormatUint(rng.Uint64(), 36)
	var ways []*faultdb.Weather
	var all []*once.Once
	for range 1 + rng.IntN(3) {
		way := faultdb.NewWeather(rng.Uint64())
		db, err := faultdb.Open(r.Driver, r.Source, way)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		all = append(all, r.open(t, db, once.Config{Reap: -1, NoWait: rng.IntN(3) == 0, Wait: time.Second}))
		way.Turn(true)
		ways = append(ways, way)
	}
	var mu sync.Mutex
	told := make(map[string]map[string]int) // what each key's calls were answered
	const fresh = 60 * time.Millisecond     // a new key comes so often, for all
	began, answered := time.Now(), 0
	var callers sync.WaitGroup
	for i := range 2 + rng.IntN(6) {
		mine := rand.New(rand.NewPCG(rng.Uint64(), 2))
		callers.Go(func() {
			for end := time.Now().Add(6 * time.Second); time.Now().Before(end); {
				key := prefix + strconv.Itoa(int(time.Since(began)/fresh)-mine.IntN(3))
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
	for _, way := range ways {
		way.Turn(false)
	}
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
