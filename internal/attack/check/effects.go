package check

import "github.com/rowlockdb/rowlock/internal/attack/history"

// effects compares what once.Do told with what was done.
func effects(r *Report, in *Input) {
	done := make(map[string]string)
	for _, row := range in.Effects {
		if other, ok := done[row.Key]; ok {
			r.violation(EffectTwice, row.Key, 0, "%s and %s", other, row.Op)
		}
		done[row.Key] = row.Op
	}
	for i := range in.Events {
		e := &in.Events[i]
		if e.Kind == history.Effect && e.Result == history.OK && done[e.Key] != e.Op && !in.undone(e) {
			r.violation(EffectGone, e.Key, e.Told, "%s was told of %q, and there is %q", e.Process, e.Op, done[e.Key])
		}
	}
}
