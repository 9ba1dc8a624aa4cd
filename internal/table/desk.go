package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// deskTimeout bounds a statement of the trace. It is below the bounds of the servers, which end
// what a driver leaves.
const deskTimeout = 4 * time.Second

// trace runs f on the desk, once. slow is the cure for what does not end in time.
func (s *Store) trace(
	ctx context.Context, verb, key, slow string,
	f func(context.Context, *sqlstore.Session) error,
) error {
	if n := s.desk.needs; n > 0 {
		return fmt.Errorf("%w: %s: the pool has no connection to spare: MaxOpenConns must be at least %d",
			lease.ErrPool, sqlstore.What(verb, key), n)
	}
	short, cancel := context.WithTimeout(ctx, deskTimeout)
	defer cancel()
	err := s.desk.use(short, f)
	if err == nil {
		return nil
	}
	return s.late(ctx, short, s.explain(verb, key, err), slow)
}

// late says whose time is over: the caller's, or the trace's own. A driver may name neither.
func (s *Store) late(ctx, short context.Context, err error, slow string) error {
	switch {
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w: %w", err, ctx.Err())
	case ctx.Err() == nil && short.Err() != nil:
		return fmt.Errorf("%w: it has not ended in %s: %s", err, deskTimeout, slow)
	}
	return err
}
