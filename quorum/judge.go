package quorum

import (
	"context"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/late"
	"github.com/rowlockdb/rowlock/lease"
)

// judge gives each bid its answer, except for those that go into another round. last says that none
// may. What the others have been granted is released before judge returns, or the next round of
// another bid would find it held.
func (s *Store) judge(ctx context.Context, bids []*bid, bound time.Duration, last bool) {
	s.mu.Lock()
	var split []*bid
	for _, b := range bids {
		if !s.conclude(ctx, b) {
			split = append(split, b)
		}
	}
	s.mu.Unlock()
	if len(split) > 0 {
		s.yield(split, s.owners(ctx, split, bound), last)
	}
	s.finish(ctx, bids, bound)
}

// conclude answers a bid that needs no other look at the members. It reports false for a bid that
// has votes, but too few of those that answered.
func (s *Store) conclude(ctx context.Context, b *bid) bool {
	y, n := b.are(yes), b.are(no)
	most := s.choose(b) && b.at(b.token) >= s.need
	switch {
	case most && b.fresh(s.valid(b.TTL)) >= s.need:
		s.grant(b)
	case most:
		b.refuse(lease.Acquired{Err: slow(b, b.slowest())})
	case ctx.Err() != nil:
		b.refuse(lease.Acquired{Err: late.Told(ctx, b.failure(s.need, ctx.Err()), nil)})
	case y+n < s.need:
		b.refuse(lease.Acquired{Err: late.Told(ctx, b.failure(s.need, nil), nil)})
	case y == 0:
		b.refuse(lease.Acquired{Holder: b.holder(s.need), Locked: b.anyLocked()})
	default:
		return false
	}
	return true
}

func (s *Store) grant(b *bid) {
	b.state = granted
	s.ahead.reached(b.Key, b.token)
	uncertain := b.count(func(v *vote) bool { return v.kind == yes && v.uncertain }) > 0
	b.answer = lease.Acquired{Granted: true, Token: b.token, Unknown: uncertain}
	s.late[attempt{b.Key, b.Owner}] = b // until it is tidied
}

// remember keeps a bid that was refused while calls of it are under way.
func (s *Store) remember(b *bid) {
	if at := (attempt{b.Key, b.Owner}); b.state == refused && b.flying > 0 && s.late[at] == nil {
		s.late[at] = b
	}
}

// inherit has a bid take over from an earlier one of its owner, which was refused while calls of it
// were under way: a release of what they get would end what this one gets.
func (s *Store) inherit(b *bid) {
	at := attempt{b.Key, b.Owner}
	before := s.late[at]
	if before == nil || before.state != refused {
		return
	}
	before.state = passed
	delete(s.late, at)
	for i := range b.votes {
		v := &before.votes[i]
		b.votes[i].uncertain = v.uncertain || v.flying
	}
}

// forget forgets a bid that has its answer, once no call of it is under way and nothing is to be
// done when its lease ends. Of leases that are lost and never released it keeps a bounded number.
func (s *Store) forget(b *bid) {
	at := attempt{b.Key, b.Owner}
	if s.late[at] == b && b.flying == 0 && (!b.mayHave() || len(s.late) > mostDirt) {
		delete(s.late, at)
	}
}

func (b *bid) anyLocked() bool {
	return b.count(func(v *vote) bool { return v.kind == no && v.locked }) > 0
}

// slowest is how long the oldest vote has waited for the others.
func (b *bid) slowest() (most time.Duration) {
	for i := range b.votes {
		if v := &b.votes[i]; v.kind == yes {
			most = max(most, time.Since(v.sent))
		}
	}
	return most
}

// owners reads the holders of these bids' keys at each member.
func (s *Store) owners(ctx context.Context, bids []*bid, bound time.Duration) map[string][]lease.Record {
	f := lease.Filter{Held: true, Limit: len(bids)}
	for _, b := range bids {
		f.Keys = append(f.Keys, b.Key)
	}
	found := make(map[string][]lease.Record)
	run(ctx, s, round[listing]{
		what: "inspect", bound: bound, items: s.all(1), send: list(f), failed: unlisted,
		reads: true, waits: true, keys: func(*member) []string { return f.Keys },
		take: func(_ *member, answers []listing) bool {
			for _, r := range answers[0].rows {
				found[r.Key] = append(found[r.Key], r)
			}
			return false
		},
	})
	return found
}

// yield refuses the bids that must leave their votes to another: an owner that has a majority, or
// the bid that has the first member. That one alone goes on, so that no two bids take votes from
// each other for ever.
func (s *Store) yield(bids []*bid, found map[string][]lease.Record, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range bids {
		h, held := winner(found[b.Key], b.Owner, s.need)
		switch {
		case held:
			b.refuse(lease.Acquired{Holder: h})
		case last || !b.first():
			b.refuse(lease.Acquired{Locked: b.anyLocked()})
		}
	}
}

// winner describes another owner that has a majority of the rows.
func winner(rows []lease.Record, but lease.Owner, need int) (h lease.Holder, found bool) {
	by := make(map[lease.Owner][]lease.Record)
	for _, r := range rows {
		if r.Owner != but {
			by[r.Owner] = append(by[r.Owner], r)
		}
	}
	for _, theirs := range by {
		if len(theirs) >= need {
			return lease.Holder{Note: theirs[0].Note, Remaining: agreed(theirs, need, true).Remaining}, true
		}
	}
	return h, false
}

// finish tidies after the bids that have their answer. The votes of those that were refused are
// released before it returns, unless the caller has left or a member does not answer.
func (s *Store) finish(ctx context.Context, bids []*bid, bound time.Duration) {
	var rest sync.WaitGroup
	s.mu.Lock()
	for _, m := range s.members {
		var release []lease.Lease
		var rise []raise
		for _, b := range bids {
			l, r := s.tidied(m, b)
			release, rise = append(release, l...), append(rise, r...)
		}
		if len(release) > 0 {
			rest.Add(1)
			s.calls.Go(func() {
				defer rest.Done()
				s.releaseAt(ctx, m, release, bound)
			})
		}
		if len(rise) > 0 {
			s.calls.Go(func() { s.raiseAt(m, rise) })
		}
	}
	for _, b := range bids {
		s.remember(b)
		s.forget(b)
	}
	s.mu.Unlock()
	rest.Wait()
}
