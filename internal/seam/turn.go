package seam

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// Turner is a store whose server lets processes queue for a key.
type Turner interface {
	// Turns calls turn when it is this process's turn to bid for key, again and again until turn
	// returns false or ctx ends. An error that is lease.ErrUnsupported says that it never will.
	Turns(ctx context.Context, key string, turn func() (again bool)) error
	// Defers notes that this process bids for key only in its turn, and for no other key; "" is
	// none. The next registration as a waiter for key says so, and no process then wakes it.
	Defers(key string)
	// Unturned returns the processes that wait for key and have not said so.
	Unturned(ctx context.Context, key string) ([]lease.Owner, error)
}

// Turns is the store's, or says that there are none.
func (s *Store) Turns(ctx context.Context, key string, turn func() (again bool)) error {
	if s.turner == nil {
		return fmt.Errorf("%w: the store has no turns", lease.ErrUnsupported)
	}
	return s.turner.Turns(ctx, key, turn)
}

// Unturned is the store's, or none if that is unknown.
func (s *Store) Unturned(ctx context.Context, key string) []lease.Owner {
	if s.turner == nil {
		return nil
	}
	all, err := s.turner.Unturned(ctx, key)
	if err != nil {
		return nil
	}
	return all
}

// Defers tells the store that this process bids for key only in its turn; "" is no key.
func (s *Store) Defers(key string) {
	if s.turner != nil {
		s.turner.Defers(key)
	}
}
