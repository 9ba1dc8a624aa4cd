package lease

import (
	"fmt"
	"hash/fnv"
	"strings"
)

const (
	// MaxKey is the longest key in bytes. It is the same on every store, because an index's own
	// limit depends on the database, and even on how well the key compresses.
	MaxKey = 255
	// Reserved begins the keys that rowlock keeps for itself, as the reaper's election and the
	// probe of Open.
	Reserved = "\x00rowlock\x00"
	// Buckets is the number of token floors. The bucket of a key is written into every database
	// that runs rowlock: neither this number nor [Bucket] may ever change.
	Buckets = 256
)

// CheckKey returns an error that wraps [ErrInvalidKey] unless key can be locked. A key has 1 to
// [MaxKey] bytes, which every store compares exactly: "A", "a", "a " and "á" are four keys.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty; a key has 1 to %d bytes", ErrInvalidKey, MaxKey)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: %.24q… has %d bytes; at most %d are allowed: hash the long part",
			ErrInvalidKey, key, len(key), MaxKey)
	case strings.HasPrefix(key, Reserved):
		return fmt.Errorf("%w: %q begins with the prefix rowlock keeps for itself",
			ErrInvalidKey, key)
	}
	return nil
}

// Bucket returns the token floor that key counts from when its row is created: FNV-1a modulo
// [Buckets].
func Bucket(key string) int {
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % Buckets)
}

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
