package testdb

import (
	"flag"
	"strconv"
)

// AtOnce has as many tests of a package run at once, whatever -parallel says. It is for the TestMain
// of a package whose tests wait, for leases that run out and sessions that end, while the processors
// have nothing to do: what is right for packages that compute would have most of its tests wait in
// line beside the few that wait for the clock.
func AtOnce(tests int) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err)
	}
}
