package supervise

import (
	"time"

	"golang.org/x/sys/unix"
)

// now is a clock that all processes of the machine share. It goes on while the machine sleeps.
func now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // Linux has had it since 2.6.39
	}
	return time.Duration(t.Nano())
}
