package quorum

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

// order has calls that name one thing begin one after the other, in the order in which they joined.
// So no release overtakes the acquire that it ends, at a member that is slower than the majority.
type order[K comparable] struct {
	mu   sync.Mutex
	last map[K]*turn
}

// look returns the turn of a call that reads: after those before it that name one of the keys, or
// after all of them if there are none. No call waits for it.
func (o *order[K]) look(keys []K) *turn {
	t := &turn{}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range keys {
		if b := o.last[k]; b != nil {
			t.before = append(t.before, b)
		}
	}
	if len(keys) == 0 {
		t.before = slices.Collect(maps.Values(o.last))
	}
	return t
}

// turn is one call in the order.
type turn struct {
	before []*turn
	over   chan struct{}
	// found is what the call leaves to those behind it.
	found any
}

// join puts a call at the end. The caller ends its turn with leave.
func (o *order[K]) join(keys []K) *turn {
	t := &turn{over: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = make(map[K]*turn)
	}
	for _, k := range keys {
		if b := o.last[k]; b != nil && b != t {
			t.before = append(t.before, b)
		}
		o.last[k] = t
	}
	return t
}

// wait returns when the calls before have ended, or ctx's error.
func (t *turn) wait(ctx context.Context) error {
	for _, b := range t.before {
		select {
		case <-b.over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// leave ends a turn.
func (o *order[K]) leave(t *turn, keys []K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range keys {
		if o.last[k] == t {
			delete(o.last, k)
		}
	}
	t.before = nil // or each turn would keep all that were before it
	if t.over != nil {
		close(t.over)
	}
}

// mostAhead bounds what is remembered. A member that is forgotten is noticed again.
const mostAhead = 4096

// ahead remembers tokens that members have granted beyond what a majority had agreed on, by key.
// Such a vote is released. Without this memory a member that is slower than the others and ahead of
// them would never take part.
type ahead map[string]lease.Lease

// note remembers the lease that is released.
func (a ahead) note(l lease.Lease) {
	if len(a) >= mostAhead {
		clear(a)
	}
	if l.Token > a[l.Key].Token {
		a[l.Key] = l
	}
}

// of returns the token for the bids of other owners than the one that was ahead: a repeated request
// must find its lease as it is.
func (a ahead) of(key string, owner lease.Owner) lease.Token {
	if l := a[key]; l.Owner != owner && l.Token < lease.MaxToken-1 {
		return l.Token
	}
	return 0
}

// reached forgets a key whose majority has caught up.
func (a ahead) reached(key string, token lease.Token) {
	if a[key].Token < token {
		delete(a, key)
	}
}
