package transition_test

import (
	"math/rand/v2"
	"os/exec"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// follows are the stages that may be beside each.
var follows = map[string][]string{
	"alone": {"alone", "both"}, "both": {"alone", "both", "new"}, "new": {"both", "new"},
}

// Two processes are killed by turns, holding and waiting, and come back in any stage that may be beside
// the other's: so there is each order of restarts, forward and back.
func TestProcessesThatAreKilledRestartInAnyOrderOfStages(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, name string, _ neighbour) {
		stages := [2]string{"alone", "both"}
		beside := make(map[string]int)
		restart := func(i int) adaptertest.Party {
			started := false
			return func(t *testing.T, e *testdb.Env, counter string) *exec.Cmd {
				if next := follows[stages[1-i]]; started {
					stages[i] = next[rand.N(len(next))]
				}
				started = true
				beside[stages[0]+" "+stages[1]]++
				return adaptertest.Go(name+" "+stages[i])(t, e, counter)
			}
		}
		slowest := adaptertest.Contest{Rounds: adaptertest.Rounds(12), Turns: 10 * time.Second}.Run(t, e, restart(0), restart(1))
		t.Logf("%v; after a kill the next held the key within %s", beside, slowest.Round(time.Millisecond))
	})
}
