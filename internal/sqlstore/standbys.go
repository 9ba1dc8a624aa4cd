package sqlstore

import (
	"regexp"
	"strconv"
)

// demanded finds the number in "ANY 2 (a, b)", "FIRST 2 (a, b)" and "2 (a, b)".
var demanded = regexp.MustCompile(`(?i)^\s*(?:(?:any|first)\s+)?(\d+)\s*\(`)

// Standbys is how many standbys a commit waits for by PostgreSQL's synchronous_standby_names.
func Standbys(names string) int {
	n := 1
	if m := demanded.FindStringSubmatch(names); m != nil {
		n, _ = strconv.Atoi(m[1])
	}
	return n
}
