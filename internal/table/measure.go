package table

import "github.com/rowlockdb/rowlock/internal/seam"

// Measure returns what the store knows of its connections.
func (s *Store) Measure() seam.Measures {
	m := s.lanes.Measure()
	m.Listening = s.hints.connected()
	return m
}
