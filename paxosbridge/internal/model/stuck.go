package model

import "slices"

// level is what a worker has seen at one depth: for each state, where its steps lead, and whether
// one grants a client the key.
type level struct {
	ids    []uint32
	ends   []uint32 // of each state's steps in leads
	leads  []uint32
	grants []bool
}

func (l *level) lead(id uint32) { l.leads = append(l.leads, id) }

func (l *level) leave(id uint32, grants bool) {
	l.ids = append(l.ids, id)
	l.ends = append(l.ends, uint32(len(l.leads)))
	l.grants = append(l.grants, grants)
}

// findStuck finds the nearest state from which no steps lead to a grant. It goes backwards through
// all depths until it frees no more states. Most steps lead deeper, so that a few rounds are
// enough.
func (x *exploration) findStuck() {
	if x.asked&NobodyStuck == 0 {
		return
	}
	free := make([][]bool, len(x.found.shards))
	for i := range free {
		free[i] = make([]bool, len(x.found.shards[i].states))
	}
	for x.spread(free) {
	}
	for _, depth := range x.levels {
		for _, l := range depth {
			for _, id := range l.ids {
				if !free[id&shardMask][id>>shardBits] {
					x.result.Broken = NobodyStuck
					x.result.Trace = x.trace(id, nil)
					return
				}
			}
		}
	}
}

// spread marks as free every state with a step to a free one. It reports whether it marked a new
// one.
func (x *exploration) spread(free [][]bool) (more bool) {
	for d := len(x.levels) - 1; d >= 0; d-- {
		for _, l := range x.levels[d] {
			begin := uint32(0)
			for i, id := range l.ids {
				steps := l.leads[begin:l.ends[i]]
				begin = l.ends[i]
				if f := &free[id&shardMask][id>>shardBits]; !*f &&
					(l.grants[i] || anyFree(free, steps)) {
					*f, more = true, true
				}
			}
		}
	}
	return more
}

func anyFree(free [][]bool, ids []uint32) bool {
	return slices.ContainsFunc(ids, func(id uint32) bool { return free[id&shardMask][id>>shardBits] })
}
