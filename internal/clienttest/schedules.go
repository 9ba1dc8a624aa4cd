package clienttest

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/rowlockdb/rowlock/internal/race"
)

// ManySchedules plays random schedules in virtual time, or some under the race detector. Each
// returns how many locks it was granted: with fewer than least in each they prove little.
func ManySchedules(t *testing.T, least int, play func(t *testing.T, rng *rand.Rand) int) {
	t.Helper()
	schedules, granted := race.Few(6, 120), 0
	for range schedules {
		seed := rand.Uint64()
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { granted += play(t, rand.New(rand.NewPCG(seed, 31))) })
		})
	}
	if granted < least*schedules {
		t.Errorf("%d grants in %d schedules: they prove little", granted, schedules)
	}
}
