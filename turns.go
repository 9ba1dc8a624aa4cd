package rowlock

import (
	"time"

	"github.com/rowlockdb/rowlock/internal/waitq"
)

// A key that is released is granted sooner to the process that has just released it than to any other, because it need not be woken.
// Where processes can be woken one by one, that is used: a process that asks again at once keeps the key for a turn, in which no other
// is woken in vain. Then it wakes the next and stands back until it is woken itself.

// slice is how long a turn lasts. To wake another process takes several times as long as a grant to this one: at 32 processes
// a turn of 8 ms made a quarter of the pairs that a turn of 30 ms makes.
func (c *Client) slice() time.Duration { return 3 * c.cfg.PollMin }

// tellOthers wakes another process for a key that was released, unless this one is about to have it again.
func (c *Client) tellOthers(key string, awaited bool) {
	if !c.hints.wakes() {
		if awaited {
			c.hints.announce(key)
		}
		return
	}
	returns := c.runs.Released(key, time.Now(), c.slice(), awaited)
	switch {
	case !awaited:
	case returns:
		c.hints.announceLater(key, waitq.Soon)
	default:
		c.hints.announce(key)
		c.runs.Left(key, time.Now())
	}
}

// yields reports whether w, which is the first of its line, is to wait for its next turn instead of bidding.
func (c *Client) yields(w *waitq.Waiter[request, grant]) bool {
	if c.runs.Asks(w.Key, time.Now(), c.cfg.PollMin) && c.hints.wakes() {
		c.watch(w.Key, waitq.Sight{})
		c.lines.Stay(w)
		return true
	}
	c.hints.forget(w.Key)
	return false
}

// precedence is how long a key that is seen free is still left to the process that was woken for it.
func (c *Client) precedence(key string, s waitq.Sight) time.Duration {
	if s.Remaining >= 0 || !c.hints.wakes() {
		return 0
	}
	return min(c.cfg.PollMin+10*c.runs.Took(key), c.cfg.PollMax) + s.Remaining // negative: for so long it has been free
}

// watch has the poller look at key, with what this process knows of how often it changes hands.
func (c *Client) watch(key string, s waitq.Sight) {
	s.Token, s.At = c.runs.Last(key)
	c.poller.Watch(key, s)
}

// woken has the waiters of key bid, of which this process alone was told. If there are none the next process is told, unless
// this one has the key by now: it will wake another when it releases it.
func (c *Client) woken(key string) {
	if !c.lines.Call(key) && !c.runs.Holds(key, time.Now(), time.Second) {
		c.hints.passOn(key)
	}
}
