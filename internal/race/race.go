// Package race tells tests whether the race detector watches them.
//
// An exploration in virtual time takes ten times as long under the detector, and after four minutes
// of one a check of the detector itself has failed. So an exploration tries few of its cases under
// the detector, because few find a race, and all of them without it: `make model` runs the packages
// whose tests import this one, and is a part of `make test`.
package race

import "testing"

// Few returns few under the race detector, and all without it.
func Few(few, all int) int {
	if Enabled {
		return few
	}
	return all
}

// Skip skips a test that has too many cases for the race detector, and no use for fewer, or that
// looks at servers and other processes, of which the detector sees nothing.
func Skip(tb testing.TB) {
	tb.Helper()
	if Enabled {
		tb.Skip("not under the race detector: scripts/explore runs it without, as make test does")
	}
}
