package groupreplication

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// askFor bounds a request to one member, because a stopped member does not answer and must not
	// delay the others.
	askFor = time.Second
	// askEvery is the pause between two rounds of requests. A failover takes seconds.
	askEvery = 100 * time.Millisecond
)

// members are the pools of a group's members. They find the primary, and are the pinned
// connections' pool.
type members struct {
	dbs  []*sql.DB
	last atomic.Int64 // the member that was primary last
	text sqlstore.Texts
}

func newMembers(dbs []*sql.DB) (*members, error) {
	for i, db := range dbs {
		if db == nil {
			return nil, fmt.Errorf(
				"%w: groupreplication: the pool of member %d is nil", lease.ErrConfig, i+1,
			)
		}
		if first := slices.Index(dbs, db); first < i {
			return nil, fmt.Errorf(
				"%w: groupreplication: members %d and %d share a pool: give each its own",
				lease.ErrConfig, first+1, i+1,
			)
		}
	}
	if len(dbs) < smallest {
		return nil, fmt.Errorf(
			"%w: groupreplication: %d pools: give one for each member; a group has at least %d",
			lease.ErrConfig, len(dbs), smallest,
		)
	}
	return &members{dbs: dbs, text: sqlstore.Of(mysql.New())}, nil
}

// limit is the smallest of the pools' limits, because any member may become the primary.
func (m *members) limit() (limit int) {
	for _, db := range m.dbs {
		if n := db.Stats().MaxOpenConnections; n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}

// Primary returns the pool of the member that is the primary now, for schema.Migrate. It waits for
// a primary until ctx ends. Another member may become primary at any time.
func Primary(ctx context.Context, dbs []*sql.DB) (*sql.DB, error) {
	m, err := newMembers(dbs)
	if err = cmp.Or(isnil.Context("groupreplication.Primary", ctx), err); err != nil {
		return nil, err
	}
	conn, err := m.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return m.dbs[m.last.Load()], conn.Close()
}

// Conn returns a connection to the member that reports itself as primary with a majority. It waits
// for one until ctx ends. A primary that is cut off and has not noticed reports that too, but
// commits nothing.
func (m *members) Conn(ctx context.Context) (*sql.Conn, error) {
	for {
		conn, err := m.find(ctx)
		if err == nil {
			return conn, nil
		}
		if !retry.Sleep(ctx, askEvery) {
			return nil, fmt.Errorf(
				"rowlock: groupreplication: no member answers as primary: %w",
				oneline.Join(err, ctx.Err()),
			)
		}
	}
}

// find asks the member that was primary last, and then all members at once.
func (m *members) find(ctx context.Context) (*sql.Conn, error) {
	last := int(m.last.Load())
	if conn, err := m.ask(ctx, last); err == nil {
		return conn, nil
	}
	conns, errs := make([]*sql.Conn, len(m.dbs)), make([]error, len(m.dbs))
	var wg sync.WaitGroup
	for i := range m.dbs {
		wg.Go(func() { conns[i], errs[i] = m.ask(ctx, i) })
	}
	wg.Wait()
	var found *sql.Conn
	for i, conn := range conns {
		switch {
		case conn == nil:
		case found == nil || i != last: // the old primary may not know yet that it was replaced
			discard(found)
			found = conn
			m.last.Store(int64(i))
		default:
			discard(conn)
		}
	}
	if found == nil {
		return nil, oneline.Join(errs...)
	}
	return found, nil
}

func discard(conn *sql.Conn) {
	if conn != nil {
		_ = conn.Close()
	}
}

// ask returns a connection to member i if that is the primary.
func (m *members) ask(ctx context.Context, i int) (*sql.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	conn, err := m.dbs[i].Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("member %d: %w", i+1, err)
	}
	v, err := m.view(ctx, conn)
	if err == nil {
		err = v.leads(atLeast)
	}
	if err != nil {
		// The server is gone, or its role changes.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		_ = conn.Close()
		return nil, fmt.Errorf("member %d: %w", i+1, err)
	}
	return conn, nil
}

func (m *members) view(ctx context.Context, conn *sql.Conn) (v view, err error) {
	err = conn.QueryRowContext(ctx, m.text.Text("group-self")).Scan(
		&v.state, &v.role, &v.members, &v.reachable,
	)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNoGroup
	}
	return v, err
}

// check checks the settings of every member that answers, and the size of the group. A member that
// does not answer is checked when it has become the primary.
func (m *members) check(ctx context.Context) error {
	var refused []error
	for i := range m.dbs {
		if err := m.checkOne(ctx, i); errors.Is(err, lease.ErrTopology) {
			refused = append(refused, fmt.Errorf("member %d: %w", i+1, err))
		}
	}
	return oneline.Join(refused...)
}

func (m *members) checkOne(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	conn, err := m.dbs[i].Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := readSettings(ctx, conn, m.text.Text("group-settings"))
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return err
	}
	v, err := m.view(ctx, conn)
	if err == nil && v.role == "PRIMARY" {
		err = v.leads(smallest)
	}
	return err
}
