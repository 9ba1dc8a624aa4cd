package groupreplication

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

const (
	// connections is the default number of connections. Each has one commit under way, which
	// takes a round of consensus.
	connections = 8
	// timeout is the default bound of one statement.
	timeout = 5 * time.Second
)

// Cluster keeps keys in a group. Many goroutines may use it.
type Cluster struct {
	rows
	members *members
	group   *sqlstore.Dialect
	store   *table.Store
	watched atomic.Int64 // when the group was last checked, in Unix nanoseconds
}

var _ paxosbridge.Cluster = (*Cluster)(nil)

// rows is what the store does for a cluster as for a table. Renew says of a lease of a sealed epoch
// that it is lost, and Inspect lists the rows of sealed records too. Listen returns an error that
// wraps lease.ErrUnsupported, because MySQL has no notifications: waiters poll.
type rows interface {
	lease.Store
	lease.Notifier
	lease.Settler
	io.Closer
}

type config struct {
	tables      []dialect.Option
	connections int
	timeout     time.Duration
}

// Option is a setting of New.
type Option func(*config)

// Tables names rowlock's tables: dialect.Prefix, dialect.Schema.
func Tables(opts ...dialect.Option) Option { return func(c *config) { c.tables = opts } }

// Connections is the number of connections to the primary, at least 2. Default 8. A connection has
// one commit under way at a time.
func Connections(n int) Option { return func(c *config) { c.connections = n } }

// Timeout bounds one statement. Default 5 s. A statement that was sent and not answered by then has
// an unknown outcome, and is repeated on another connection. So this is also how long it takes to
// leave a primary that hangs.
func Timeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// New returns a cluster on a group. dbs has a pool for each member, because any member may become
// the primary. The pools stay the caller's to close, after the cluster.
//
// New checks every member that it can reach, runs every kind of statement once, and waits until a
// majority of the members has seen a write. It waits for a primary until ctx ends. An error wraps
// lease.ErrTopology for a group that may lose acknowledged writes, and lease.ErrNoSchema if
// schema.Migrate has not been run.
func New(ctx context.Context, dbs []*sql.DB, opts ...Option) (*Cluster, error) {
	var cfg config
	for _, o := range opts {
		o(&cfg)
	}
	m, n, err := configure(dbs, &cfg)
	if err = cmp.Or(isnil.Context("groupreplication.New", ctx), err); err != nil {
		return nil, err
	}
	c := &Cluster{members: m, group: newGroup(cfg.tables)}
	if err := c.members.check(ctx); err != nil {
		return nil, err
	}
	c.store, _, err = table.Open(
		ctx, c.members, c.group, table.Options{Connections: n, Timeout: cmp.Or(cfg.timeout, timeout)},
	)
	if err != nil {
		return nil, err
	}
	c.rows = c.store
	if err := c.arrives(ctx); err != nil {
		return nil, oneline.Join(err, c.store.Close())
	}
	return c, nil
}

func configure(dbs []*sql.DB, cfg *config) (*members, int, error) {
	if cfg.timeout < 0 || cfg.connections < 0 || cfg.connections == 1 {
		return nil, 0, fmt.Errorf(
			"%w: groupreplication: timeout %v, %d pinned connections: use a timeout above 0 and at least 2 pinned connections",
			lease.ErrConfig, cfg.timeout, cfg.connections,
		)
	}
	m, err := newMembers(dbs)
	if err != nil {
		return nil, 0, err
	}
	n, err := conn.Count(cfg.connections, connections, 0, m.limit(), 2)
	return m, n, err
}
