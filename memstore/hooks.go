package memstore

import (
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Expire ends key's lease now, as if its TTL had passed. Its holder learns of it with the next
// renewal, or at the latest at its own deadline. A key without a live lease stays as it is.
func (s *Store) Expire(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if r := s.rows[key]; r != nil && r.held(now) {
		r.expires = now
		for _, m := range r.members {
			m.expires = now
		}
	}
}

// ExpireMember ends the lease of one member that shares key now, as if its TTL had passed.
func (s *Store) ExpireMember(key string, owner lease.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, now := s.rows[key], time.Now(); r != nil && r.member(now, owner) != nil {
		r.members[owner].expires = now
	}
}

// AgeIntents makes the intents for key older, as if their callers had begun to wait earlier by that
// much.
func (s *Store) AgeIntents(key string, by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.intents[key] {
		w.since = w.since.Add(-by)
	}
}

// ExpireTicket ends a waiter's ticket now, as if its TTL had passed. The queue passes the waiter of
// a Fair client over until its next heartbeat.
func (s *Store) ExpireTicket(key string, waiter lease.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.queues[key][waiter]; t != nil {
		t.alive = time.Now()
	}
}

// AgeTicket makes a waiter's ticket older, as if the waiter had joined earlier by that much.
func (s *Store) AgeTicket(key string, waiter lease.Owner, by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.queues[key][waiter]; t != nil {
		t.rank -= by
	}
}

// SetToken puts token into key's row, so that the next grant has a larger one. A key without a
// row gets a free one.
func (s *Store) SetToken(key string, token lease.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[key]
	if r == nil {
		now := time.Now()
		r = &row{granted: now, expires: now}
		s.rows[key] = r
	}
	r.token = token
}

// Rows returns the number of rows, of held and of free keys.
func (s *Store) Rows() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows)
}
