package memstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Queue = (*Store)(nil)

// ticket is one waiter's position in the queue of a key.
type ticket struct {
	lease.AcquireRequest
	// rank is when it joined, less the head start of its priority; number decides between equals.
	rank   time.Duration
	number int64
	alive  time.Time
}

func (t *ticket) before(u *ticket) bool {
	return cmp.Or(cmp.Compare(t.rank, u.rank), cmp.Compare(t.number, u.number)) < 0
}

// Join puts each ticket into its queue, or renews it. See [lease.Queue].
func (s *Store) Join(ctx context.Context, tickets []lease.Ticket) (unknown bool, err error) {
	for _, t := range tickets {
		if err := checkTicket(t); err != nil {
			return false, err
		}
	}
	_, err = each(ctx, s, tickets, s.joinLocked)
	return false, err
}

func checkTicket(t lease.Ticket) error {
	if err := lease.CheckStoredKey(t.Key); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if t.Owner.IsZero() {
		return fmt.Errorf("join %q: %w", t.Key, errZeroOwner)
	}
	return t.CheckPriority()
}

// joinLocked ignores a waiter that has the key already: its ticket is used up, and a late heartbeat
// must not bring it back.
func (s *Store) joinLocked(now time.Time, q lease.Ticket) struct{} {
	if r := s.rows[q.Key]; r != nil && r.owner == q.Owner && r.held(now) {
		return struct{}{}
	}
	t := s.ticketLocked(now, q.Key, q.Owner)
	if t == nil {
		s.tickets++
		t = &ticket{rank: now.Sub(s.born) - q.HeadStart(), number: s.tickets}
		if s.queues[q.Key] == nil {
			s.queues[q.Key] = make(map[lease.Owner]*ticket)
		}
		s.queues[q.Key][q.Owner] = t
	}
	t.AcquireRequest, t.alive = q.AcquireRequest, now.Add(q.TTL)
	return struct{}{}
}

// ticketLocked returns the waiter's ticket if it is alive.
func (s *Store) ticketLocked(now time.Time, key string, waiter lease.Owner) *ticket {
	if t := s.queues[key][waiter]; t != nil && now.Before(t.alive) {
		return t
	}
	return nil
}

// headLocked returns the head of the queue, ignoring the ticket of but.
func (s *Store) headLocked(now time.Time, key string, but lease.Owner) (head *ticket) {
	for waiter, t := range s.queues[key] {
		if waiter != but && now.Before(t.alive) && (head == nil || t.before(head)) {
			head = t
		}
	}
	return head
}

func (s *Store) dropLocked(key string, waiter lease.Owner) {
	delete(s.queues[key], waiter)
	if len(s.queues[key]) == 0 {
		delete(s.queues, key)
	}
}

// Leave removes tickets. See [lease.Queue].
func (s *Store) Leave(ctx context.Context, waiters []lease.Lease) error {
	_, err := each(ctx, s, waiters, func(_ time.Time, l lease.Lease) struct{} {
		s.dropLocked(l.Key, l.Owner)
		return struct{}{}
	})
	return err
}

// QueuePositions returns the positions of tickets. See [lease.Queue].
func (s *Store) QueuePositions(ctx context.Context, waiters []lease.Lease) ([]lease.QueuePosition, error) {
	return each(ctx, s, waiters, s.placeLocked)
}

func (s *Store) placeLocked(now time.Time, l lease.Lease) (p lease.QueuePosition) {
	r := s.rows[l.Key]
	if r != nil {
		holder := r.holder(now)
		p.Remaining, p.Token, p.Note = holder.Remaining, r.token, holder.Note
		p.Shared = holder.Shared && r.held(now)
		if p.Granted = r.held(now) && r.owner == l.Owner; p.Granted {
			return p
		}
	}
	mine := s.ticketLocked(now, l.Key, l.Owner)
	p.Missing = mine == nil
	for _, t := range s.queues[l.Key] {
		if mine != nil && now.Before(t.alive) && t.before(mine) {
			p.Ahead++
		}
	}
	return p
}

// Claim grants each free key to its requester, unless another is ahead. See [lease.Queue].
func (s *Store) Claim(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return each(ctx, s, reqs, s.claimLocked)
}

func (s *Store) claimLocked(now time.Time, q lease.AcquireRequest) lease.Acquired {
	if r := s.rows[q.Key]; r == nil || !r.held(now) {
		if head := s.headLocked(now, q.Key, lease.Owner{}); head != nil && head.Owner != q.Owner {
			return lease.Acquired{}
		}
	}
	got := s.acquireLocked(now, q)
	if got.Granted {
		s.dropLocked(q.Key, q.Owner)
		r := s.rows[q.Key]
		// The key may have been passed to the requester a while ago.
		if expires := now.Add(q.TTL); expires.After(r.expires) {
			r.expires = expires
		}
	}
	return got
}

// Pass ends leases and grants their keys to the heads of their queues. See [lease.Queue].
func (s *Store) Pass(ctx context.Context, leases []lease.Lease) ([]lease.Passed, error) {
	return each(ctx, s, leases, s.passLocked)
}

func (s *Store) passLocked(now time.Time, l lease.Lease) lease.Passed {
	released := s.releaseLocked(now, l)
	if released.Gone || released.Err != nil {
		return lease.Passed{Gone: released.Gone, Err: released.Err}
	}
	head := s.headLocked(now, l.Key, l.Owner)
	if head == nil {
		return lease.Passed{}
	}
	got := s.acquireLocked(now, head.AcquireRequest)
	if !got.Granted {
		return lease.Passed{} // the key's tokens have run out
	}
	s.dropLocked(l.Key, head.Owner)
	return lease.Passed{To: head.Owner, Token: got.Token}
}
