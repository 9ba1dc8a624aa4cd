package table

import "context"

// Channel is what the names of the server's messages and turns begin with.
func (s *Store) Channel() string { return s.channel }

// RehearseReap is the end of the rehearsal of an opening.
func (s *Store) RehearseReap(ctx context.Context, key string) error {
	return s.rehearseReap(ctx, key, Options{})
}
