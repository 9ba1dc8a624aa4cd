package table

import (
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// engine runs operations on lanes until their outcome is known, or cannot be known.
type engine struct {
	d        *sqlstore.Dialect
	strategy sqlstore.Strategy
	lanes    *lane.Set[call]
	limit    time.Duration // of a call that has no other
	process  processes
}

// explain turns a database's error into one of ours, with the verb and the key.
func (e *engine) explain(verb, key string, err error) error {
	switch {
	case errors.Is(err, lane.ErrClosed):
		return fmt.Errorf("%w: %s %q", lease.ErrClosed, verb, key)
	case errors.Is(err, lane.ErrWithdrawn):
		return fmt.Errorf("rowlock: %s %q: %w", verb, key, err)
	case errors.Is(err, lane.ErrOrphaned):
		return fmt.Errorf("%w: %s %q: %w", lease.ErrUnknown, verb, key, err)
	}
	v := sqlstore.Judge(e.d, err)
	switch {
	case v.As != nil:
		return fmt.Errorf("%w: %s %q: %w", v.As, verb, key, err)
	case v.Class == sqlstore.Unknown:
		return fmt.Errorf("%w: %s %q: %w", lease.ErrUnknown, verb, key, err)
	case v.Class == sqlstore.Conflict:
		return fmt.Errorf("%w: %s %q: %w", lease.ErrBusy, verb, key, err)
	}
	return fmt.Errorf("rowlock: %s %q: %w", verb, key, err)
}
