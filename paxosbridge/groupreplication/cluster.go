package groupreplication

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

const (
	// lanes is how many connections are kept unless told otherwise: each has one commit under way, which takes a round of consensus.
	lanes = 8
	// timeout bounds one statement unless told otherwise.
	timeout = 5 * time.Second
)

// Cluster keeps keys in a group. Its methods may be called from many goroutines.
type Cluster struct {
	members *members
	group   *sqlstore.Dialect
	store   *table.Store
	watched atomic.Int64 // when the group was last looked at, in Unix nanoseconds
}

var _ paxosbridge.Cluster = (*Cluster)(nil)

type config struct {
	tables  []dialect.Option
	lanes   int
	timeout time.Duration
}

// Option changes what New does.
type Option func(*config)

// Tables says where rowlock's tables are: dialect.Prefix, dialect.Schema.
func Tables(opts ...dialect.Option) Option { return func(c *config) { c.tables = opts } }

// Lanes is how many connections to the primary are kept, at least 2; 8 unless set. A connection has one commit under way at a time.
func Lanes(n int) Option { return func(c *config) { c.lanes = n } }

// Timeout bounds one statement; 5 s unless set. What was sent and not answered by then has an unknown outcome, and is asked for again on
// another connection: after a primary has fallen silent this is how long it takes to look for the next.
func Timeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// New returns a cluster on a group of which dbs are the members, each by a pool of its own: all of them, because any may become
// the primary. The pools stay the caller's to close, after the cluster.
//
// It looks at every member it can reach, and errors wrap lease.ErrTopology for a group that is not to be trusted and lease.ErrNoSchema
// where schema.Migrate has not been run. It waits for a primary until ctx ends. It runs every kind of statement once, and waits until another member has seen a write.
func New(ctx context.Context, dbs []*sql.DB, opts ...Option) (*Cluster, error) {
	var cfg config
	for _, o := range opts {
		o(&cfg)
	}
	m, n, err := configure(dbs, &cfg)
	if err != nil {
		return nil, err
	}
	c := &Cluster{members: m, group: newGroup(cfg.tables)}
	if err := c.members.check(ctx); err != nil {
		return nil, err
	}
	c.store, _, err = table.Open(ctx, c.members, c.group, table.Options{Lanes: n, Timeout: cmp.Or(cfg.timeout, timeout)})
	if err != nil {
		return nil, err
	}
	if err := c.arrives(ctx); err != nil {
		return nil, errors.Join(err, c.store.Close())
	}
	return c, nil
}

func configure(dbs []*sql.DB, cfg *config) (*members, int, error) {
	if cfg.timeout < 0 || cfg.lanes < 0 || cfg.lanes == 1 {
		return nil, 0, fmt.Errorf("%w: a timeout of %v, %d lanes; a timeout above 0, and at least 2 lanes", lease.ErrConfig, cfg.timeout, cfg.lanes)
	}
	m, err := newMembers(dbs)
	if err != nil {
		return nil, 0, err
	}
	n, err := lane.Count(cfg.lanes, lanes, 0, m.limit(), 2)
	return m, n, err
}

// Close runs what is pending to its end and gives the connections up.
func (c *Cluster) Close() error { return c.store.Close() }

// Renew extends leases. Those of an epoch that was sealed are lost.
func (c *Cluster) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return c.store.Renew(ctx, reqs)
}

// Release gives leases up.
func (c *Cluster) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	return c.store.Release(ctx, leases)
}

// Inspect lists rows, also those of records that are sealed, as the primary knows them.
func (c *Cluster) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	return c.store.Inspect(ctx, f)
}

// Listen returns an error that wraps lease.ErrUnsupported: MySQL has no messages, and there is only the poll.
func (c *Cluster) Listen(ctx context.Context, heard func(key string)) error {
	return c.store.Listen(ctx, heard)
}

// Announce does nothing: nobody can listen.
func (c *Cluster) Announce(ctx context.Context, keys []string) error {
	return c.store.Announce(ctx, keys)
}

// Settle returns when what is running has ended, or with ctx. An acquire whose caller has left can be granted until then.
func (c *Cluster) Settle(ctx context.Context) { c.store.Settle(ctx) }
