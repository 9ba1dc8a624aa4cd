package queue

import "testing"

// A client that shares other keys all the time must not remember each of them.
func TestAKeyThatNoCallSharesHasNoLeaders(t *testing.T) {
	var all leaders
	for _, key := range []string{"a", "b"} {
		all.count(key, 1)
		all.count(key, 1)
		mine, _, again := all.lead(key, true, 0)
		if _, other, _ := all.lead(key, true, 0); mine == nil || other != mine || again {
			t.Fatalf("%q has the leaders %p and %p", key, mine, other)
		}
		mine.end()
		mine.end()
		if _, _, again := all.lead(key, true, 0); !again {
			t.Errorf("the end of the leader of %q is not told", key)
		}
		all.count(key, -1)
		if n := all.count(key, 0); n != 1 {
			t.Errorf("%d leaders of %q have ended", n, key)
		}
		all.count(key, -1)
	}
	if len(all.now) > 0 {
		t.Errorf("the leaders of %d keys are remembered", len(all.now))
	}
}
