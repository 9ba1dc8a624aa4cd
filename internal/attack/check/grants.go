package check

import (
	"cmp"
	"slices"
	"sort"

	"github.com/rowlockdb/rowlock/internal/attack/history"
	"github.com/rowlockdb/rowlock/lease"
)

// onKey are the events of one key.
type onKey struct {
	key    string
	grants []*history.Event // those that were granted, by when they were told
	best   []*history.Event // best[i] has the highest token of grants[:i+1]
	ends   []*history.Event // unlocks
	writes []*history.Event
	// denied are sections whose locks were lost before their functions began.
	denied []*history.Event
	of     map[history.Holder]*history.Event // the grant of each handle
}

func byKey(events []history.Event) []*onKey {
	all := make(map[string]*onKey)
	for i := range events {
		e := &events[i]
		if e.Key == "" || e.Result == "" {
			continue
		}
		k := all[e.Key]
		if k == nil {
			k = &onKey{key: e.Key, of: make(map[history.Holder]*history.Event)}
			all[e.Key] = k
		}
		k.add(e)
	}
	var list []*onKey
	for _, k := range all {
		k.sort()
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b *onKey) int { return cmp.Compare(a.key, b.key) })
	return list
}

func (k *onKey) add(e *history.Event) {
	switch {
	case e.Kind == history.Grant && e.Result == history.OK:
		k.grants = append(k.grants, e)
		k.of[e.Holder()] = e
	case e.Kind == history.Grant && e.Result == history.Lost:
		k.denied = append(k.denied, e)
	case e.Kind == history.Unlock:
		k.ends = append(k.ends, e)
	case e.Kind == history.Write:
		k.writes = append(k.writes, e)
	}
}

func (k *onKey) sort() {
	slices.SortStableFunc(k.grants, func(a, b *history.Event) int { return cmp.Compare(a.Told, b.Told) })
	for i, g := range k.grants {
		if i > 0 && k.best[i-1].Token >= g.Token {
			g = k.best[i-1]
		}
		k.best = append(k.best, g)
	}
}

// before returns the grant with the highest token among those told before t, or nil.
func (k *onKey) before(t int64) *history.Event {
	n := sort.Search(len(k.grants), func(i int) bool { return k.grants[i].Told >= t })
	if n == 0 {
		return nil
	}
	return k.best[n-1]
}

// twice finds a token that two handles were granted.
func (k *onKey) twice(r *Report) {
	first := make(map[lease.Token]*history.Event, len(k.grants))
	for _, g := range k.grants {
		if f := first[g.Token]; f != nil {
			r.violation(Twice, k.key, g.Told, "token %d: %s by %s, told %s; and %s by %s, told %s later",
				g.Token, f.Act, f.Process, "first", g.Act, g.Process, ms(g.Told-f.Told))
			continue
		}
		first[g.Token] = g
	}
}

// falls finds a token below one that had been granted before it was asked for.
func (k *onKey) falls(r *Report) {
	for _, g := range k.grants {
		if b := k.before(g.Sent); b != nil && b.Token > g.Token {
			r.violation(Falls, k.key, g.Told, "%d by %s, asked for %s after %s had been told %d",
				g.Token, g.Process, ms(g.Sent-b.Told), b.Process, b.Token)
		}
	}
}

// deposed finds a holder whose Unlock or commit succeeded though another had been granted the key
// before either was begun. An Unlock that a failover cut short cannot know by whose end the key
// went on, its own or the failover's; nor can it be known here whether that grant is one that was
// undone. A fence knows.
func (k *onKey) deposed(r *Report, in *Input) {
	for _, e := range k.ends {
		if b := in.standing(k, e); e.Result == history.OK && !e.Left && b != nil && b.Token > e.Token {
			r.violation(FalseUnlock, k.key, e.Told, "Unlock of token %d by %s returned nil, and was sent %s after %s had been told %d",
				e.Token, e.Process, ms(e.Sent-b.Told), b.Process, b.Token)
		}
	}
	for _, e := range k.writes {
		if b := k.before(e.Sent); e.Result == history.OK && b != nil && b.Token > e.Token {
			r.violation(StaleWrite, k.key, e.Told, "a write under token %d by %s was committed, and its fence was sent %s after %s had been told %d",
				e.Token, e.Process, ms(e.Sent-b.Told), b.Process, b.Token)
		}
	}
}

// early finds a lock that its holder was told it had lost, before any clock allowed that: less than
// two thirds of the TTL after the request was sent, the rest being the most that Margin can be.
// Nothing excuses it, whatever was stopped: a lease that the store has granted lasts for its TTL,
// unless a failover has undone its row or an operator has taken the key away.
func (k *onKey) early(r *Report, undone []Span) {
	for _, e := range slices.Concat(k.ends, k.writes, k.denied) {
		g := k.of[e.Holder()]
		if e.Kind == history.Grant {
			g = e // its Sent is before all that it may have been granted
		}
		if e.Result != history.Lost || e.Left || isForced(k.key) || g == nil || e.Told-g.Sent >= int64(g.TTL)*2/3 || meets(undone, g.Sent, e.Told) {
			continue
		}
		r.violation(EarlyLoss, k.key, e.Told, "%s of token %d by %s (%s): lost %s after it was asked for, TTL %s: %s",
			e.Kind, e.Token, e.Process, e.Act, ms(e.Told-g.Sent), g.TTL, e.Err)
	}
}
