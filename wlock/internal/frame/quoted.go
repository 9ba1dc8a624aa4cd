package frame

import (
	"regexp"
	"slices"
)

// bare is a number that stands where a key of an object is, or a string, in which nothing is.
var bare = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|[{,][0-9]+:`)

// Quoted puts quotes around each number that stands where a key of an object is. The registry
// writes such keys bare, and no reader of JSON takes them.
func Quoted(text []byte) []byte {
	return bare.ReplaceAllFunc(text, func(m []byte) []byte {
		if m[0] == '"' {
			return m
		}
		return slices.Concat(m[:1], []byte{'"'}, m[1:len(m)-1], []byte(`":`))
	})
}
