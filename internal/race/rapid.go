package race

import (
	"flag"
	"strconv"
	"testing"
)

// Checks has rapid try few cases under the race detector, until the test ends. The command line
// overrides it. No test may run rapid in parallel with tb.
func Checks(tb testing.TB, few int) {
	tb.Helper()
	checks := flag.Lookup("rapid.checks")
	if checks == nil {
		tb.Fatal("nothing of the test uses rapid")
	}
	if !Enabled || checks.Value.String() != checks.DefValue {
		return
	}
	set := func(value string) {
		if err := checks.Value.Set(value); err != nil {
			tb.Fatal(err)
		}
	}
	set(strconv.Itoa(few))
	tb.Cleanup(func() { set(checks.DefValue) })
}
