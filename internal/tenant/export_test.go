package tenant

// Len is how many spaces are remembered.
func (s *Spaces) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}
