//go:build unix && !linux

package supervise

import (
	"time"

	"golang.org/x/sys/unix"
)

// now is a clock that all processes of the machine share.
func now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
