package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Sharer = (*Store)(nil)

// member is one of those that hold a key together.
type member struct {
	note    string
	expires time.Time
}

// intent is a caller that waits for a key exclusively.
type intent struct{ since, alive time.Time }

// until is when the last of those that hold the key has expired.
func (r *row) until() time.Time {
	last := r.expires
	for _, m := range r.members {
		if m.expires.After(last) {
			last = m.expires
		}
	}
	return last
}

// live counts the members that have not expired.
func (r *row) live(now time.Time) (n int) {
	for _, m := range r.members {
		if now.Before(m.expires) {
			n++
		}
	}
	return n
}

// holder describes the holder, of a reader group the member that lives longest.
func (r *row) holder(now time.Time) lease.Holder {
	last := r.until()
	h := lease.Holder{Note: r.note, Remaining: last.Sub(now), Shared: r.members != nil}
	for _, m := range r.members {
		if m.expires.Equal(last) {
			h.Note = m.note
		}
	}
	return h
}

// Share lets each requester into the reader group that holds its key. See [lease.Sharer].
func (s *Store) Share(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return each(ctx, s, reqs, s.shareLocked)
}

func (s *Store) shareLocked(now time.Time, q lease.AcquireRequest) lease.Acquired {
	if err := q.Check(); err != nil {
		return lease.Acquired{Err: err}
	}
	r := s.rows[q.Key]
	switch {
	case r != nil && r.placement != lease.PlacementTable:
		return lease.Acquired{Err: fmt.Errorf("share %q: %w", q.Key, lease.ErrMoved)}
	case r == nil || !r.held(now):
		return lease.Acquired{Possible: true}
	case r.members == nil:
		return lease.Acquired{Holder: r.holder(now)}
	}
	if r.member(now, q.Owner) == nil && s.refusesLocked(now, q.Key) {
		return lease.Acquired{Holder: r.holder(now)}
	}
	m := r.members[q.Owner]
	if m == nil {
		m = &member{note: q.Note}
		r.members[q.Owner] = m
	}
	m.expires = now.Add(q.TTL)
	return lease.Acquired{Granted: true, Token: r.token}
}

// Downgrade makes leases reader groups of one. See [lease.Sharer].
func (s *Store) Downgrade(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return each(ctx, s, reqs, s.downgradeLocked)
}

func (s *Store) downgradeLocked(now time.Time, q lease.RenewRequest) lease.Renewed {
	if err := q.CheckDowngrade(); err != nil {
		return lease.Renewed{Err: err}
	}
	clock, r := now.Sub(s.born), s.rows[q.Key]
	switch {
	case r != nil && r.names(q.Lease) && r.held(now):
		r.members = map[lease.Owner]*member{q.Owner: {note: r.note, expires: now.Add(q.TTL)}}
		r.owner, r.note, r.expires = lease.ReaderGroup(r.token), "", now
	case r != nil && r.token == q.Token && r.member(now, q.Owner) != nil:
		r.members[q.Owner].expires = now.Add(q.TTL)
	default:
		return lease.Renewed{Outcome: lease.Lost, Clock: clock}
	}
	return lease.Renewed{Outcome: lease.Extended, Clock: clock}
}

// member returns a member that has not expired.
func (r *row) member(now time.Time, owner lease.Owner) *member {
	if m := r.members[owner]; m != nil && now.Before(m.expires) {
		return m
	}
	return nil
}

func (s *Store) renewMemberLocked(now time.Time, q lease.RenewRequest) lease.RenewOutcome {
	r := s.rows[q.Key]
	if r == nil || r.token != q.Token || r.member(now, q.Owner) == nil {
		return lease.Lost
	}
	r.members[q.Owner].expires = now.Add(q.TTL)
	return lease.Extended
}

func (s *Store) releaseMemberLocked(now time.Time, l lease.Lease) lease.Released {
	r := s.rows[l.Key]
	if r == nil || r.members[l.Owner] == nil || l.Token != 0 && l.Token != r.token {
		return lease.Released{Gone: true}
	}
	delete(r.members, l.Owner)
	if r.live(now) > 0 {
		return lease.Released{Shared: true}
	}
	r.owner, r.note, r.expires, r.members = lease.Owner{}, "", now, nil
	return lease.Released{Awaited: s.awaitedLocked(now, l.Key, lease.Owner{})}
}

// Intend notes that a caller waits for keys exclusively. See [lease.Sharer].
func (s *Store) Intend(ctx context.Context, waiter lease.Owner, keys []string, d time.Duration) error {
	if waiter.IsZero() {
		return fmt.Errorf("%w: intent: %w", lease.ErrConfig, errZeroOwner)
	}
	_, err := each(ctx, s, keys, func(now time.Time, key string) struct{} {
		s.intentLocked(now, key, waiter, d)
		return struct{}{}
	})
	return err
}

func (s *Store) intentLocked(now time.Time, key string, waiter lease.Owner, d time.Duration) {
	if d <= 0 {
		if delete(s.intents[key], waiter); len(s.intents[key]) == 0 {
			delete(s.intents, key)
		}
		return
	}
	if s.intents[key] == nil {
		s.intents[key] = make(map[lease.Owner]*intent)
	}
	w := s.intents[key][waiter]
	if w == nil || !now.Before(w.alive) {
		// Of now itself, Round would drop the monotonic clock, which all else here is compared by.
		w = &intent{since: s.born.Add(now.Sub(s.born).Round(lease.IntentRefuses + lease.IntentAdmits))}
		s.intents[key][waiter] = w
	}
	w.alive = now.Add(d)
}

// refusesLocked reports whether the oldest live intent for key refuses new members.
func (s *Store) refusesLocked(now time.Time, key string) bool {
	var oldest *intent
	for _, w := range s.intents[key] {
		if now.Before(w.alive) && (oldest == nil || w.since.Before(oldest.since)) {
			oldest = w
		}
	}
	return oldest != nil && lease.Refuses(now.Sub(oldest.since))
}

// sweepIntents removes dead intents.
func (s *Store) sweepIntents(now time.Time, retention time.Duration) {
	for key, intents := range s.intents {
		for waiter, w := range intents {
			if now.Sub(w.alive) >= retention {
				s.intentLocked(now, key, waiter, 0)
			}
		}
	}
}
