package quorum

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// attempt names one request, however often it is repeated.
type attempt struct {
	key   string
	owner lease.Owner
}

// bid is one request on its way to a majority. Store.mu guards it once it was sent.
type bid struct {
	lease.AcquireRequest
	votes []vote      // of each member
	token lease.Token // that the lease has, or is to have, at a majority
	state state
	// gone: the lease was released while calls were under way.
	gone   bool
	flying int // calls that have not been answered
	rounds int
	answer lease.Acquired // once it is not open
}

type state uint8

const (
	open state = iota
	granted
	refused
	passed // refused, and a later bid of the same owner answers for its calls
)

// vote is what a member has answered last.
type vote struct {
	kind   kind
	flying bool // a call is under way
	token  lease.Token
	sent   time.Time // before the request that was answered yes
	holder lease.Holder
	locked bool // no, because the row was locked
	// unknown: a copy of the request may still run at the member.
	uncertain bool
	err       error // of failed
}

type kind uint8

const (
	silent kind = iota
	yes
	no
	failed
)

func newBid(q lease.AcquireRequest, members int) *bid {
	b := &bid{AcquireRequest: q, votes: make([]vote, members)}
	if err := q.Check(); err != nil {
		b.refuse(lease.Acquired{Err: err})
	}
	return b
}

func (b *bid) refuse(a lease.Acquired) { b.state, b.answer = refused, a }

func (b *bid) lease(token lease.Token) lease.Lease {
	return lease.Lease{Key: b.Key, Owner: b.Owner, Token: token}
}

func (b *bid) count(of func(v *vote) bool) (n int) {
	for i := range b.votes {
		if of(&b.votes[i]) {
			n++
		}
	}
	return n
}

func (b *bid) are(k kind) int { return b.count(func(v *vote) bool { return v.kind == k }) }

// heard notes a member's answer to an acquire that was sent at a moment.
func (b *bid) heard(m *member, a lease.Acquired, sent time.Time) {
	v := &b.votes[m.at]
	b.flying--
	again := b.rounds > 1 && a.Locked // that may be an earlier copy of this very request
	v.flying, v.uncertain = false, v.uncertain || a.Unknown || again
	v.token, v.err, v.holder, v.locked = 0, nil, a.Holder, a.Locked
	switch {
	case a.Err != nil:
		v.kind, v.err = failed, a.Err
		v.uncertain = v.uncertain || unknown(a.Err)
	case a.Granted:
		v.kind, v.token, v.sent = yes, a.Token, sent
	default:
		v.kind = no
	}
}

// choose sets the token that a majority is to have: that which a majority has, or else the largest,
// which is above every earlier token of the quorum. It reports false without a majority. What a
// majority has is chosen because it may be a lease that was told before.
//
// ahead is a token that a member had granted to an earlier owner beyond that owner's. The next
// token of that member is above it. So the others are raised to that, or it would be ahead for
// ever.
func (b *bid) choose(need int, ahead lease.Token) bool {
	if b.are(yes) < need {
		return false
	}
	if b.token = b.agreed(need); b.token > ahead {
		return true
	}
	b.token = ahead + 1
	for i := range b.votes {
		if v := &b.votes[i]; v.kind == yes {
			b.token = max(b.token, v.token)
		}
	}
	return true
}

// agreed is the token that a majority has granted, or 0.
func (b *bid) agreed(need int) lease.Token {
	for i := range b.votes {
		if token := b.votes[i].token; b.at(token) >= need {
			return token
		}
	}
	return 0
}

// at is how many members have granted the token. One that is being raised may have it no more.
func (b *bid) at(token lease.Token) int {
	return b.count(func(v *vote) bool { return v.kind == yes && !v.flying && v.token == token })
}

// fresh is how many leases with the chosen token are surely alive for a while yet.
func (b *bid) fresh(valid time.Duration) int {
	return b.count(func(v *vote) bool {
		return v.kind == yes && v.token == b.token && time.Since(v.sent) < valid
	})
}

// first reports whether the bid has the first member that has answered it. Of bids that split the
// votes, this one goes on.
func (b *bid) first() bool {
	for i := range b.votes {
		if k := b.votes[i].kind; k == yes || k == no {
			return k == yes
		}
	}
	return false
}

// holder describes the one that is in the way: the key may be free once so many of the members that
// have refused it are.
func (b *bid) holder(need int) lease.Holder {
	var holders []lease.Holder
	for i := range b.votes {
		if b.votes[i].kind == no {
			holders = append(holders, b.votes[i].holder)
		}
	}
	if len(holders) == 0 {
		return lease.Holder{}
	}
	slices.SortFunc(holders, func(x, y lease.Holder) int { return cmp.Compare(x.Remaining, y.Remaining) })
	at := need - b.are(yes) - 1
	return holders[max(0, min(at, len(holders)-1))]
}

// failure says why there is no majority, with what each member has said.
func (b *bid) failure(need int, why error) error {
	var errs []error
	sent := false
	for i := range b.votes {
		v := &b.votes[i]
		switch {
		case v.kind == failed:
			errs = append(errs, v.err)
		case v.kind == silent && v.flying:
			errs = append(errs, fmt.Errorf("member %d: no answer in time", i+1))
		}
		sent = sent || v.flying || v.uncertain
	}
	errs = append(errs, why)
	text := fmt.Sprintf("quorum: acquire %q: %d of %d members answered and %d granted it; %d must: ",
		b.Key, b.are(yes)+b.are(no), len(b.votes), b.are(yes), need)
	all := oneline.Join(errs...)
	if sent && !errors.Is(all, lease.ErrUnknown) || all == nil {
		return fmt.Errorf("%w: %s%w", lease.ErrUnknown, text, orNone(all))
	}
	return fmt.Errorf("rowlock: %s%w", text, all)
}

func orNone(err error) error {
	if err == nil {
		return errors.New("no member says why")
	}
	return err
}
