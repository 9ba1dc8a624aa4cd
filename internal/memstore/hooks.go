package memstore

import (
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Expire ends key's lease now, as if its TTL had passed. For tests; a key without a live lease is left as it is.
func (s *Store) Expire(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if r := s.rows[key]; r != nil && r.held(now) {
		r.expires = now
	}
}

// ExpireTicket ends the life of a waiter's ticket now, as if its TTL had passed. For tests.
func (s *Store) ExpireTicket(key string, waiter lease.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.queues[key][waiter]; t != nil {
		t.alive = time.Now()
	}
}

// AgeTicket makes a waiter's ticket as old as if it had joined so much earlier. For tests.
func (s *Store) AgeTicket(key string, waiter lease.Owner, by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.queues[key][waiter]; t != nil {
		t.rank -= by
	}
}

// Tickets returns the number of tickets, live and dead.
func (s *Store) Tickets() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range s.queues {
		n += len(queue)
	}
	return n
}

// SetToken puts token into key's row, for tests that need a large one. A key without a row gets one, free.
func (s *Store) SetToken(key string, token int64) {
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

// Rows returns the number of rows, live and dead.
func (s *Store) Rows() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows)
}
