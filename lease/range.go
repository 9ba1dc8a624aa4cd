package lease

import "strings"

// Range returns the bounds of the keys that begin with prefix: all are larger than after, and none
// is larger than last. A store finds them in an index, which a comparison of each key's first bytes
// does not.
func Range(prefix string) (after, last string) {
	return before(prefix), fill(prefix)
}

// fill returns the largest key with a prefix.
func fill(prefix string) string {
	return prefix + strings.Repeat("\xff", max(0, MaxKey-len(prefix)))
}

// before returns a text below all keys with a prefix, and not below any other such text that is a
// key.
func before(prefix string) string {
	last := len(prefix) - 1
	switch {
	case last < 0:
		return ""
	case prefix[last] == 0:
		return prefix[:last]
	}
	return fill(prefix[:last] + string([]byte{prefix[last] - 1}))
}
