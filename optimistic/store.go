package optimistic

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/opening"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	openTimeout      = 30 * time.Second
	statementTimeout = 5 * time.Second
)

// DB is the part of a pool that New needs; *sql.DB and *sqlx.DB have it.
type DB = dialect.DB

// Store keeps leases as rows and changes them by compare-and-swap: the version is the token,
// together with owner and expiry. It has no lease.Queue, and no shared keys, limits, forced
// releases or trace. Close it after its clients.
type Store struct {
	leases
	waits
	facts sqlstore.Facts
}

// leases are the abilities of the table's store that carry over for a holder.
type leases interface {
	lease.Store
	lease.Fencer
	lease.TxReleaser
	lease.Sweeper
	lease.Settler
	Tables() any
	Close() error
}

// waits are those that carry over for calls that wait.
type waits interface {
	lease.Passer
	lease.Registry
	lease.Notifier
	lease.Graph
}

// Option configures New.
type Option func(*settings) error

type settings struct {
	connections int
	timeout     time.Duration
}

// Connections is how many connections of the pool the store keeps. Default 4, or all but one of a
// smaller pool.
func Connections(n int) Option {
	return func(s *settings) error {
		if n < 1 {
			return fmt.Errorf("%w: Connections (%d) must be at least 1", lease.ErrConfig, n)
		}
		s.connections = n
		return nil
	}
}

// Timeout bounds one operation at the database. Default 5 s. Set it well below the TTL, to a third.
// The minimum is 5 s on MySQL, which waits a second or two for a locked row, 2.5 s on PostgreSQL
// behind a pooler, and 250 ms on PostgreSQL.
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

// New returns a store on the tables in db, which schema.Migrate or your own tool has made, and runs
// every kind of statement once. The user needs SELECT, INSERT and UPDATE on rowlock, SELECT on
// rowlock_floor and rowlock_meta, and SELECT, INSERT, UPDATE and DELETE on rowlock_queue,
// rowlock_wait and rowlock_meta. A sweep needs UPDATE on rowlock_floor and DELETE on rowlock too;
// without them leave it to another client: rowlock.Config.Reaper.Off. It takes 30 s at most, even
// if the server does not answer.
func New(db DB, d dialect.Dialect, opts ...Option) (*Store, error) {
	return NewContext(context.Background(), db, d, opts...)
}

// NewContext is New, and returns the error of ctx if ctx ends before the store is open. Without a
// deadline in ctx it takes 30 s at most. The store goes on after ctx has ended; Close ends it.
func NewContext(ctx context.Context, db DB, d dialect.Dialect, opts ...Option) (*Store, error) {
	of, err := sqlstore.CheckOpen("optimistic.New", db, d)
	if err != nil {
		return nil, err
	}
	set := settings{timeout: statementTimeout}
	if err := opening.Apply("optimistic.New", &set, opts); err != nil {
		return nil, err
	}
	limit := db.Stats().MaxOpenConnections
	connections, err := conn.Count(set.connections, conn.Single, of.Connections(), limit, 1)
	if err != nil {
		return nil, err
	}
	ctx, cancel, err := sqlstore.Opening(ctx, "optimistic.NewContext", openTimeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	store, facts, err := table.Open(ctx, db, swapping(of, set.timeout), table.Options{
		Connections: connections, Timeout: set.timeout, Optimistic: true,
		Hints: limit == 0 || limit > connections+of.HintConnections(),
	})
	if err != nil {
		return nil, err
	}
	return &Store{leases: store, waits: store, facts: facts}, nil
}

// Warnings are settings of the server that weaken the guarantees without breaking them, each with
// its cure: for your log.
func (s *Store) Warnings() []string { return s.facts.Warnings }
