package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// mostSeized bounds how many rows of one call are looked at.
const mostSeized = 8

// errSeized ends what has found out what it can, and rolls it back.
var errSeized = errors.New("rolled back")

// swallowed returns an error if the row of a key is not locked by another transaction, and is as it
// was although a statement should have changed it. A trigger that drops or undoes changes looks
// like a transaction that keeps the row locked, and its key would be held for ever by no holder.
//
// It proves that before it says so: it locks the row itself, and then tries once more. What cannot
// be found out is no error.
func (s *Store) swallowed(ctx context.Context, key string) error {
	if ctx.Err() != nil {
		return nil
	}
	found := make(chan bool, 1) // a lane may write to it after the call has left
	_, _ = s.once(ctx, newOp(lane.Acquire, task{
		other: func(ctx context.Context, session *sqlstore.Session) error {
			err := seize(ctx, session, s.d, key)
			if err == nil {
				err = session.InTx(ctx, func() error { return s.tryInVain(ctx, session, key, found) })
			}
			if err == errSeized {
				return nil
			}
			return err
		},
	}))
	select {
	case <-found:
		return vanished(fmt.Sprintf("the row of %q, which no other transaction has locked, was not changed", key))
	default:
		return nil
	}
}

// tryInVain tries once more with the row locked.
func (s *Store) tryInVain(
	ctx context.Context, session *sqlstore.Session, key string, found chan<- bool,
) error {
	if err := seize(ctx, session, s.d, key); err != nil {
		return err
	}
	r := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: rehearsalTTL}
	_, err := s.d.Acquire(ctx, session, sqlstore.Update, r)
	// Where one connection writes at a time, a locked row is a file that is busy.
	if errors.Is(err, sqlstore.ErrRowShape) || !s.d.OneWriter && errors.Is(err, sqlstore.ErrRowLocked) {
		found <- true
	}
	return errSeized
}

// seize locks the row of a key, and returns errSeized if another
// transaction has it locked.
func seize(ctx context.Context, s *sqlstore.Session, d *sqlstore.Dialect, key string) error {
	var one int
	err := s.QueryRow(ctx, d.Text("seize"), []any{[]byte(key)}, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return errSeized
	}
	return err
}

// isUntaken reports whether err says that a row was to be had, and was not got.
func isUntaken(err error) bool {
	return errors.Is(err, sqlstore.ErrRowLocked) || errors.Is(err, sqlstore.ErrRowShape)
}

// swallowedAny is swallowed for the first of keys of several that are not held and were not got.
func (s *Store) swallowedAny(ctx context.Context, reqs []lease.AcquireRequest, out []lease.Acquired) error {
	looked := 0
	for i := range out {
		if !out[i].Locked || out[i].Doubtful || out[i].Err != nil {
			continue
		}
		if err := s.swallowed(ctx, reqs[i].Key); err != nil {
			return err
		}
		if looked++; looked == mostSeized {
			break
		}
	}
	return nil
}
