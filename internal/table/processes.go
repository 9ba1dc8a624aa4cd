package table

import (
	"sync/atomic"

	"github.com/rowlockdb/rowlock/lease"
)

// processes remembers for which process the store works, so that a release does not report that
// process's own waiters. A store that serves several processes cannot tell which one releases, and
// leaves out none.
type processes struct {
	seen atomic.Pointer[lease.Owner]
	told atomic.Bool // by Meet
}

// sure reports whether alone is the process that releases, or none. A client behind a store that
// does not say which processes there are may be another one.
func (p *processes) sure() bool { return p.told.Load() || p.alone().IsZero() }

func (p *processes) meet(process lease.Owner) {
	if p.seen.Load() == nil && p.seen.CompareAndSwap(nil, &process) {
		return
	}
	if *p.seen.Load() != process {
		p.seen.Store(&lease.Owner{})
	}
}

// alone returns the only process that was met, or the zero owner.
func (p *processes) alone() lease.Owner {
	if seen := p.seen.Load(); seen != nil {
		return *seen
	}
	return lease.Owner{}
}
