package election

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// These tests wait most of the time, and their processes sleep.
	if err := flag.Set("test.parallel", "12"); err != nil {
		println(err.Error())
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
