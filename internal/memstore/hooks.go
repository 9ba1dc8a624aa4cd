package memstore

import "time"

// Expire ends key's lease now, as if its TTL had passed. For tests; a key without a live lease is left as it is.
func (s *Store) Expire(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if r := s.rows[key]; r != nil && r.held(now) {
		r.expires = now
	}
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
