package forupdate

import (
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/lease"
)

// Edges follows the waits of chains. It leaves out a key whose holder's transaction is gone,
// because any waiter gets that key, whatever its row says.
func (s *Store) Edges(
	ctx context.Context, by lease.Party, from []lease.Owner, limit int,
) ([]lease.Edge, error) {
	edges, err := s.rows.Edges(ctx, by, from, limit)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(edges))
	for i, e := range edges {
		keys[i] = e.Key
	}
	slices.Sort(keys)
	free, err := s.keys.free(ctx, slices.Compact(keys))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(edges, func(e lease.Edge) bool { return free[e.Key] }), nil
}
