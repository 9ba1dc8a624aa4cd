package check

import "github.com/rowlockdb/rowlock/internal/attack/history"

// shared looks at readers. A generation of readers has one token, between those of the writers
// before and after it.
func shared(r *Report, in *Input) {
	events := in.Events
	writers := make(map[string]*onKey)
	for _, k := range byKey(events) {
		writers[k.key] = k
	}
	for i := range events {
		e := &events[i]
		if e.Result != history.OK || writers[e.Key] == nil {
			continue
		}
		switch e.Kind {
		case history.Shared:
			sharing(r, in, writers[e.Key], e)
		case history.Read:
			if e.Value != 0 {
				r.violation(Unrepeated, e.Key, e.Told, "token %d of %s: the counter rose by %d under its fence", e.Token, e.Process, e.Value)
			}
		}
	}
}

func sharing(r *Report, in *Input, k *onKey, e *history.Event) {
	for _, g := range k.grants {
		if g.Token == e.Token {
			r.violation(SharedToken, e.Key, e.Told, "token %d: %s reads, and %s was granted it alone", e.Token, e.Process, g.Process)
		}
	}
	if b := in.standing(k, e); b != nil && b.Token > e.Token {
		r.violation(SharedStale, e.Key, e.Told, "%d by %s, asked for %s after %s had been told %d",
			e.Token, e.Process, ms(e.Sent-b.Told), b.Process, b.Token)
	}
}

// standing is before without the grants that a failover may have undone before e was told: a reader
// may join a generation from before them, whose token is that of its first member.
func (in *Input) standing(k *onKey, e *history.Event) (best *history.Event) {
	undone := over(in.Undone, e.Told)
	if len(undone) == 0 {
		return k.before(e.Sent)
	}
	for _, g := range k.grants {
		if g.Told < e.Sent && (best == nil || g.Token > best.Token) && !meets(undone, g.Sent, g.Told) {
			best = g
		}
	}
	return best
}

// over are the spans that had ended at t.
func over(spans []Span, t int64) (list []Span) {
	for _, s := range spans {
		if s.To < t {
			list = append(list, s)
		}
	}
	return list
}
