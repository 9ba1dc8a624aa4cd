package once

import "time"

// AwaitWaiters returns when n calls wait for the one that has the key.
func AwaitWaiters(o *Once, key string, n int) {
	for {
		o.lines.mu.Lock()
		t := o.lines.at[place{"", key}]
		enough := t != nil && t.waiters >= n
		o.lines.mu.Unlock()
		if enough {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
