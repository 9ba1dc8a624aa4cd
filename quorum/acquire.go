package quorum

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

// Acquire asks all members at once and grants each key that a majority has granted. What a minority
// has granted is released before it returns, or is released later if a member does not answer.
//
// If several requests split the votes so that none has a majority, the one that has the first
// member goes on for a part of Timeout, and the others return "not granted" with Remaining 0: their
// callers ask again, each after a pause of its own.
func (s *Store) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	if err := s.ready(ctx, "acquire"); err != nil {
		return nil, err
	}
	bids, attempts, bound := make(map[attempt]*bid), make([]attempt, len(reqs)), s.cfg.Timeout
	for i, q := range reqs { // one that comes twice is one
		attempts[i] = attempt{q.Key, q.Owner}
		if bids[attempts[i]] == nil {
			bids[attempts[i]] = newBid(q, len(s.members))
			bound = min(bound, s.asked(q.TTL))
		}
	}
	// Two copies of a request would choose two tokens, and the second would take the lease from the
	// first.
	turn := s.copies.join(attempts)
	if err := turn.wait(ctx); err != nil {
		s.calls.Go(func() { // those behind it must not go past those before it
			_ = turn.wait(context.Background())
			s.copies.leave(turn, attempts)
		})
		return nil, fmt.Errorf("rowlock: quorum: acquire: %w", err)
	}
	defer s.copies.leave(turn, attempts)
	s.copy(bids, turn)
	s.contend(ctx, opened(slices.Collect(maps.Values(bids))), bound)
	answers := make([]lease.Acquired, len(reqs))
	for i, at := range attempts {
		answers[i] = bids[at].answer
	}
	return answers, only(answers, func(a lease.Acquired) error { return a.Err })
}

// copy takes what copies of these requests were granted while this call was under way, and the
// calls of earlier ones that were refused.
func (s *Store) copy(bids map[attempt]*bid, turn *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range turn.before {
		done, _ := b.found.(map[attempt]*bid)
		for at, copied := range done {
			if bids[at] != nil && copied.state == granted && !copied.gone {
				bids[at] = copied
			}
		}
	}
	for _, b := range bids {
		if b.state == open {
			s.inherit(b)
		}
	}
	turn.found = bids
}

// only returns the error of a batch of one as the call's own, as other stores do.
func only[T any](items []T, err func(T) error) error {
	if len(items) == 1 {
		return err(items[0])
	}
	return nil
}

// contend goes on until each bid has an answer. A bid goes into another round only if it has the
// first member and no other owner has a majority.
func (s *Store) contend(ctx context.Context, bids []*bid, bound time.Duration) {
	until := time.Now().Add(bound / 2)
	left := opened(bids)
	for rest := time.Millisecond; len(left) > 0; rest = min(2*rest, 32*time.Millisecond) {
		s.ask(ctx, left, bound)
		s.lift(ctx, left, bound)
		s.judge(ctx, left, bound, !time.Now().Before(until))
		if left = opened(left); len(left) > 0 {
			retry.Sleep(ctx, rest/2+rand.N(rest))
		}
	}
}

func opened(bids []*bid) []*bid {
	return slices.DeleteFunc(slices.Clone(bids), func(b *bid) bool { return b.state != open })
}

// ask sends each bid to the members that have not granted it, and returns when every bid has a
// majority or cannot get one in this round.
func (s *Store) ask(ctx context.Context, bids []*bid, bound time.Duration) {
	ballots, items := s.ballots(bids)
	sent := time.Now()
	hear := func(m *member, answers []lease.Acquired) {
		for i, b := range ballots[m.at] {
			b.heard(m, answers[i], sent)
		}
	}
	run(ctx, s, round[lease.Acquired]{
		what: "acquire", bound: bound, items: items, waits: true,
		keys: func(m *member) []string {
			return keysOf(ballots[m.at], func(b *bid) string { return b.Key })(m)
		},
		send: func(ctx context.Context, m *member) ([]lease.Acquired, error) {
			return m.store.Acquire(ctx, requests(ballots[m.at]))
		},
		failed: func(err error) lease.Acquired { return lease.Acquired{Err: err} },
		take: func(m *member, answers []lease.Acquired) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			hear(m, answers)
			return all(bids, func(b *bid) bool { return s.decided(b) })
		},
		late: func(m *member, answers []lease.Acquired) {
			s.mu.Lock()
			hear(m, answers)
			s.mu.Unlock()
			s.tidy(m, ballots[m.at])
		},
	})
}

// ballots notes for each member which bids it is asked for in this round.
func (s *Store) ballots(bids []*bid) (ballots [][]*bid, items []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ballots, items = make([][]*bid, len(s.members)), s.all(0)
	for _, b := range bids {
		b.rounds++
		for i, m := range s.members {
			v := &b.votes[i]
			if v.kind == yes || v.flying {
				continue
			}
			m.dirt.wanted(b.Key, b.Owner)
			v.kind, v.flying = silent, true
			b.flying++
			ballots[i] = append(ballots[i], b)
			items[i]++
		}
	}
	return ballots, items
}

// decided reports whether the bid has a majority, or the members that have not answered cannot make
// one. Of a lease that its owner may have been told, the majority is one that agrees: a repeated
// request must find its lease as it is.
func (s *Store) decided(b *bid) bool {
	y, before := b.are(yes), s.late[attempt{b.Key, b.Owner}]
	told := before != nil && before.state == granted || s.ahead[b.Key].Owner == b.Owner
	return y >= s.need && (b.flying == 0 || !told || b.agreed(s.need) > 0) || y+b.flying < s.need
}

func requests(bids []*bid) []lease.AcquireRequest {
	reqs := make([]lease.AcquireRequest, len(bids))
	for i, b := range bids {
		reqs[i] = b.AcquireRequest
	}
	return reqs
}

func all(bids []*bid, of func(b *bid) bool) bool {
	return !slices.ContainsFunc(bids, func(b *bid) bool { return !of(b) })
}

// slow is the refusal of a grant that came too late to be told.
func slow(b *bid, took time.Duration) error {
	return fmt.Errorf("%w: quorum: acquire %q: a majority took %s of a TTL of %s: give a longer TTL",
		lease.ErrBusy, b.Key, took.Round(time.Millisecond), b.TTL)
}
