package dialect

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rowlockdb/rowlock/lease"
)

// HandOver runs the hand-over section of a dialect whose UPDATE can return the new token.
func HandOver(ctx context.Context, s *Session, d Dialect, args ...any) (lease.Acquired, error) {
	a := Answer{State: StateMine}
	err := s.QueryRow(ctx, d.Text("hand-over"), args, &a.Token)
	if errors.Is(err, sql.ErrNoRows) {
		return lease.Acquired{}, nil
	}
	if err != nil {
		return lease.Acquired{}, err
	}
	return a.Acquired()
}
