package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// Fence locks the row in the caller's transaction if it still names this owner and token. It looks at no clock: whoever
// would take an expired lease must change that row, and cannot while tx lasts.
func (s *Store) Fence(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	var one int
	err := tx.QueryOne(ctx, s.d.Text("fence"), []any{[]byte(l.Key), dialect.Bytes(l.Owner), l.Token}, &one)
	return s.inTx(ctx, tx, "fence", l, err)
}

// ReleaseTx clears the owner in the caller's transaction.
func (s *Store) ReleaseTx(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	n, err := tx.Exec(ctx, s.d.Text("release-tx"), []any{[]byte(l.Key), dialect.Bytes(l.Owner), l.Token})
	if err == nil && n == 0 {
		err = sql.ErrNoRows
	}
	return s.inTx(ctx, tx, "unlock", l, err)
}

func (s *Store) inTx(ctx context.Context, tx lease.Runner, verb string, l lease.Lease, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return s.notMine(ctx, tx, l)
	}
	v := dialect.Judge(s.d, err)
	switch {
	case errors.Is(v.As, lease.ErrNoSchema):
		return fmt.Errorf("%w: %s %q: %w", lease.ErrForeignTx, verb, l.Key, err)
	case v.Class == dialect.Conflict:
		return fmt.Errorf("rowlock: %s %q: %w (roll back and try again; fence first in a transaction, before any read)", verb, l.Key, err)
	}
	return fmt.Errorf("rowlock: %s %q: %w", verb, l.Key, err)
}

// notMine tells a lost lease from a transaction of another database, where nothing of ours can be.
func (s *Store) notMine(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	var instance string
	err := tx.QueryOne(ctx, s.d.Text("instance"), nil, &instance)
	if err != nil || instance != s.instance {
		return fmt.Errorf("%w: %q is locked in another database than the one this transaction writes to; begin it on the pool that was given to Open", lease.ErrForeignTx, l.Key)
	}
	return fmt.Errorf("%w: %q is no longer held with token %d; roll back", lease.ErrFenced, l.Key, l.Token)
}
