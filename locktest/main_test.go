package locktest

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Here rapid is made to fail, on purpose: it must not miss its chance, and need not cut its
	// findings down nor keep them.
	for name, value := range map[string]string{"rapid.checks": "1000", "rapid.nofailfile": "true", "rapid.shrinktime": "0s"} {
		if err := flag.Set(name, value); err != nil {
			println(err.Error())
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}
