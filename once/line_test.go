package once

import "testing"

// The caller that ran the function owns its result and may write to it, while those that have
// waited for it still copy theirs.
func TestTheResultOfARepeatIsNotThatOfTheCallItWaitedFor(t *testing.T) {
	l := lines{at: make(map[place]*turn)}
	r := Request{Key: "k"}
	mine, _ := l.enter(r)
	_, other := l.enter(r)
	result := []byte("result")
	mine.value, mine.done = result, true
	l.leave(r, mine)
	copy(result, "XXXXXX")
	if string(other.value) != "result" {
		t.Errorf("a repeat gets %q", other.value)
	}
}
