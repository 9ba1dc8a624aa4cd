package check

import (
	"strings"

	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// CorruptPrefix is of the keys whose rows the attack spoils. Nothing else is asked of them.
const CorruptPrefix = "corrupt/"

// corrupt finds a row that could not be read and was granted, although its lease had not run out,
// and calls for other keys that have failed because of it.
func corrupt(r *Report, events []history.Event) {
	for i := range events {
		e := &events[i]
		if e.Kind != history.Spoiled && strings.Contains(e.Err, "corrupt row") {
			r.violation(BadCosts, e.Key, e.Told, "%s by %s: %s", e.Kind, e.Process, e.Err)
		}
		if e.Kind == history.Spoiled && e.Result == history.OK && e.Told-e.Sent < int64(e.TTL)*2/3 {
			r.violation(BadGrant, e.Key, e.Told, "by %s, while it was held with token %d", e.Process, e.Token)
		}
	}
}

// isSpoiled says whether a row that is left is one of the attack's own.
func isSpoiled(l history.Row) bool { return strings.HasPrefix(l.Key, CorruptPrefix) }
