package mysql

import (
	"fmt"
	"strings"
)

// spell writes parameters into a statement: bytes in hexadecimal, which no mode and no character
// set of a session reads otherwise, and integers.
func spell(query string, args []any) string {
	var b strings.Builder
	for _, arg := range args {
		before, after, _ := strings.Cut(query, "?")
		format := "%d"
		if _, bytes := arg.([]byte); bytes {
			format = "x'%x'"
		}
		b.WriteString(before)
		fmt.Fprintf(&b, format, arg)
		query = after
	}
	return b.String() + query
}
