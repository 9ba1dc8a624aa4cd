package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
)

// Pool has connections to borrow.
type Pool interface {
	Conn(ctx context.Context) (*sql.Conn, error)
}

// CheckOpen returns the dialect behind a public one, for caller, the name of a function. Its error
// wraps lease.ErrConfig if db or d is nil, or an interface that has a nil pointer in it, on which a
// method would panic.
func CheckOpen(caller string, db Pool, d Public) (*Dialect, error) {
	if isnil.Value(db) || isnil.Value(d) {
		return nil, fmt.Errorf("%w: %s needs a database and a dialect, and one of them is nil",
			lease.ErrConfig, caller)
	}
	return Of(d), nil
}
