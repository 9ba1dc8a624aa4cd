package deadlock

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// These tests wait most of the time, but each starts three processes, which is work.
	if err := flag.Set("test.parallel", "4"); err != nil {
		println(err.Error())
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
