package rig

import (
	"context"
	"math"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestTheProcessorsOfAServersChildrenCount(t *testing.T) {
	before, err := TreeCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
	if err := cmd.Run(); err != nil {
		t.Skip("no shell")
	}
	after, err := TreeCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if after-before < 2*tick {
		t.Errorf("a child that counted to 300,000 took %s", after-before)
	}
	if after > time.Hour {
		t.Errorf("%s is more than this test can have used", after)
	}
}

func TestACostIsThatOfAPairAndWhatIsNotKnownIsNoZero(t *testing.T) {
	log := int64(1000)
	m := &Meter{Log: func(context.Context) (int64, error) { log *= 2; return log, nil }}
	end, err := m.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := end(4)
	if err != nil {
		t.Fatal(err)
	}
	if c.Log != 500 { // (4000 - 2000) / 4
		t.Errorf("%v bytes of log a pair, not 500", c.Log)
	}
	if !math.IsNaN(c.Server) || !math.IsNaN(c.Trips) {
		t.Errorf("neither server nor connections, and yet they cost %v and %v", c.Server, c.Trips)
	}
	if c, _ = end(0); !math.IsNaN(c.Log) {
		t.Errorf("no pairs cost %v each", c.Log)
	}
	got := Known([]Cost{{Trips: 3}, {Trips: math.NaN()}, {Trips: 1}, {Trips: 2}}, func(c Cost) float64 { return c.Trips })
	if got != 2 {
		t.Errorf("the median of what is known is %v, not 2", got)
	}
}

func TestTheMemoryOfAServerIsThatOfItsProcesses(t *testing.T) {
	touched := make([]byte, 64<<20)
	for i := 0; i < len(touched); i += 4096 { // a page
		touched[i] = 1
	}
	sum, err := TreeMemory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if sum == 0 {
		t.Skip("the kernel does not tell")
	}
	if sum < int64(len(touched)) {
		t.Errorf("%d bytes are less than this test has touched", sum)
	}
	if touched[0] != 1 {
		t.Error("what was touched is to be kept until here")
	}
	if _, err := TreeMemory(1 << 30); err == nil {
		t.Error("a process that is not there has memory")
	}
}
