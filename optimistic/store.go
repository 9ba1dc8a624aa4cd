package optimistic

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	openTimeout      = 30 * time.Second
	statementTimeout = 5 * time.Second
)

// DB is what New needs of a pool; *sql.DB and *sqlx.DB have it.
type DB = dialect.DB

// Store keeps leases as rows and changes them by compare-and-swap: the version is the token, together with owner and expiry. It is
// everything that the store of rowlock.Open is, but for lease.Queue. Close it after the clients that were made with it.
type Store struct {
	rows
	facts sqlstore.Facts
}

// rows are the abilities that carry over.
type rows interface {
	lease.Store
	lease.Fencer
	lease.TxReleaser
	lease.Sweeper
	lease.Passer
	lease.Interest
	lease.Notifier
	Settle(ctx context.Context)
	Close() error
}

// Option changes what New does.
type Option func(*settings) error

type settings struct {
	lanes   int
	timeout time.Duration
}

// Lanes is how many connections of the pool the store keeps to itself. Default 4, or all but one of a smaller pool.
func Lanes(n int) Option {
	return func(s *settings) error {
		if n < 1 {
			return fmt.Errorf("%w: Lanes (%d) must be at least 1", lease.ErrConfig, n)
		}
		s.lanes = n
		return nil
	}
}

// Timeout bounds one operation at the database. Default 5 s. Have it well below the TTL: a third. The least is 5 s on MySQL, which waits
// a second or two for a row that somebody has locked, 2.5 s on Postgres behind a pooler, and 250 ms on Postgres.
func Timeout(d time.Duration) Option {
	return func(s *settings) error {
		if d < minTimeout {
			return fmt.Errorf("%w: Timeout (%s) must be at least %s", lease.ErrConfig, d, minTimeout)
		}
		s.timeout = d
		return nil
	}
}

const minTimeout = 100 * time.Millisecond

// New returns a store on the tables in db, which schema.Migrate or your own tool has made, and runs every kind of statement once. The
// user needs SELECT, INSERT and UPDATE on rowlock, SELECT on rowlock_floor and rowlock_meta, and SELECT, INSERT, UPDATE and DELETE on
// rowlock_queue. To sweep takes UPDATE on rowlock_floor and DELETE on rowlock as well; without them leave it to another client:
// rowlock.Config.Reaper.Off.
func New(db DB, d dialect.Dialect, opts ...Option) (*Store, error) {
	of, err := sqlstore.CheckOpen("optimistic.New", db, d)
	if err != nil {
		return nil, err
	}
	set := settings{timeout: statementTimeout}
	for _, o := range opts {
		if err := o(&set); err != nil {
			return nil, err
		}
	}
	limit := db.Stats().MaxOpenConnections
	lanes, err := lane.Count(set.lanes, lane.Single, of.Lanes(), limit, 1)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	store, facts, err := table.Open(ctx, db, swapping(of, set.timeout), table.Options{
		Lanes: lanes, Timeout: set.timeout, Hints: limit == 0 || limit > lanes+1, Optimistic: true,
	})
	if err != nil {
		return nil, err
	}
	return &Store{rows: store, facts: facts}, nil
}

// Warnings are settings of the server that weaken the guarantees without breaking them, each with its cure: for your log.
func (s *Store) Warnings() []string { return s.facts.Warnings }
