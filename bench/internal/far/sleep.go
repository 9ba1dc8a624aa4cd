//go:build !linux

package far

import "time"

func sleep(d time.Duration) { time.Sleep(d) }
