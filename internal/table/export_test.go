package table

// Channel is what the names of the server's messages and turns begin with.
func (s *Store) Channel() string { return s.channel }
