package quorum

import "github.com/rowlockdb/rowlock/lease"

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
