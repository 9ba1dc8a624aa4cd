// Package bubbles runs tests that use testing/synctest.
package bubbles

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/rowlockdb/rowlock/internal/race"
)

// Main runs the tests of a package, and fails if they leave a goroutine behind. Under the race
// detector one goroutine runs at a time: timers that two goroutines of a bubble find due at once
// share a context of the detector, which crashes (golang/go#78156). The detector finds a race by
// what orders two accesses, and not by their moment.
func Main(m *testing.M) {
	if race.Enabled {
		runtime.GOMAXPROCS(1)
	}
	goleak.VerifyTestMain(m)
}
