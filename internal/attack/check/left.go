package check

import (
	"github.com/rowlockdb/rowlock/internal/attack/history"

	"github.com/rowlockdb/rowlock/lease"
)

// left looks at the keys that are still held after every process has closed its clients. Those of
// killed processes may be, until they expire; and those of a client whose Close said that it could
// not release everything. A key that was unlocked may not be, nor one that no process was told to
// have.
func left(r *Report, in *Input) {
	type grant struct {
		key   string
		token lease.Token
	}
	granted, released := make(map[grant]bool), make(map[grant]bool)
	excused := in.Killed
	for i := range in.Events {
		e := &in.Events[i]
		g := grant{e.Key, e.Token}
		switch {
		case e.Kind == history.Close && e.Result != history.OK:
			excused = true
		case e.Result != history.OK:
		case e.Kind == history.Grant:
			granted[g] = true
		case e.Kind == history.Unlock:
			released[g] = true
		}
	}
	excused = excused && !in.Settled
	for _, l := range in.Left {
		switch g := (grant{l.Key, l.Token}); {
		case isSpoiled(l):
		case released[g]:
			r.violation(StillHeld, l.Key, 0, "Unlock of token %d returned nil", l.Token)
		case !excused && !granted[g]:
			r.violation(Orphan, l.Key, 0, "token %d, of which no process was told", l.Token)
		case !excused:
			r.violation(Orphan, l.Key, 0, "token %d, which was not unlocked", l.Token)
		default:
			r.finding(Remaining, l.Key, 0, "token %d", l.Token)
		}
	}
}
