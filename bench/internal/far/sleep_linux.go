package far

import (
	"syscall"
	"time"
)

// sleep has the thread sleep. Go's own timers wait for the poller of the network, whose least time
// is a millisecond: twice what is to be slept.
func sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	left := syscall.NsecToTimespec(int64(d))
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
}
