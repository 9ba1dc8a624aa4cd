package table

import (
	"context"
	"fmt"
	"sync"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// synchronous checks each session of a pinned connection when it is made. After a failover that is
// a new one, so that no statement has to ask again.
type synchronous struct {
	d     *sqlstore.Dialect
	first sync.Once
	weak  []string // what the first session has found; read after it
}

// requireSync returns nil if no commit must wait for another server.
func requireSync(d *sqlstore.Dialect, o Options) (*synchronous, error) {
	switch {
	case !o.RequireSync:
		return nil, nil
	case d.Pooled():
		return nil, fmt.Errorf("%w: RequireSync: behind a pooler in transaction mode the server can change "+
			"beneath a connection that was checked; give Open a pool that goes to the server directly",
			lease.ErrUnsupported)
	case d.Synchronous == nil:
		return nil, fmt.Errorf("%w: RequireSync: a commit on %s waits for no other server; leave it out, or "+
			"use PostgreSQL, MySQL or MariaDB with a synchronous replica", lease.ErrUnsupported, d.Name())
	}
	return &synchronous{d: d}, nil
}

// after returns the function that sets up a session of a pinned connection. The check comes after
// setup, which may change what a commit waits for.
func (c *synchronous) after(
	setup func(context.Context, *conn.Session) error,
) func(context.Context, *conn.Session) error {
	if c == nil {
		return setup
	}
	return func(ctx context.Context, s *conn.Session) error {
		if err := setup(ctx, s); err != nil {
			return err
		}
		weak, err := c.d.Synchronous(ctx, s.Conn())
		c.first.Do(func() { c.weak = weak })
		return err
	}
}
