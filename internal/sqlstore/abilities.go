package sqlstore

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// A dialect may have the abilities below, where what the store does by itself would lock rows that it only reads.

// Fencer is a Dialect that fences in its own way, which need not be a query.
type Fencer interface {
	// Fence returns sql.ErrNoRows if the row does not name this owner and token. A TTL of 0 leaves the expiry as it is.
	Fence(ctx context.Context, tx lease.Runner, r lease.RenewRequest) error
}

// Reaper is a Dialect that removes dead rows in its own way.
type Reaper interface {
	// Reap removes what of keys, all of one bucket, has been dead for the retention, after it has raised the floor. It sees to
	// its own transactions.
	Reap(ctx context.Context, s *Session, bucket int, keys []string, retention time.Duration) (removed int64, err error)
}

// Modest is a Dialect that looks at the user's rights when it probes, and can leave out those that only sweeping takes.
type Modest interface {
	// Unswept returns the same dialect for a user who need not sweep.
	Unswept() Dialect
}

// Native is a Dialect that knows which errors are of its own product, the server or the driver. A transaction that returns one is not of
// another product, whatever became of it: its session may have been ended by the server.
type Native interface {
	Native(err error) bool
}

// UnwatchedTx is a Dialect whose driver waits for the answer to the COMMIT or ROLLBACK of a *sql.Tx whatever becomes of any context, but
// watches the context of a statement.
type UnwatchedTx interface{ UnwatchedTx() }
