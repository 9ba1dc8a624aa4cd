package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// Facts is what a probe learned.
type Facts struct {
	// Server is the product and its version, for messages: "PostgreSQL 15.18".
	Server string
	// Warnings are settings that weaken the guarantees without breaking them, each with its cure.
	Warnings []string
	// RowSecurity names the tables of which the server may hide rows from this user, with the cure;
	// "": none.
	RowSecurity string
	// Sets are the sets of tables that the database has.
	Sets Sets
}

// Hidden returns err with the reason that comes before all others, if the server may hide rows from
// this user: what is hidden looks missing, and no error of a statement names the policy.
func (f Facts) Hidden(err error) error {
	if err == nil || f.RowSecurity == "" {
		return err
	}
	return fmt.Errorf("%w: %s: %w", lease.ErrPrivilege, f.RowSecurity, err)
}

// Probe checks the server and then the tables; see Database.Server.
func (d *Dialect) Probe(ctx context.Context, conn *sql.Conn) (Facts, error) {
	facts, err := d.Server(ctx, conn)
	if err == nil && d.RowSecurity != nil {
		facts.RowSecurity, err = d.RowSecurity(ctx, conn, d.settings.tables(Sets{Shared: {}}))
	}
	if facts.RowSecurity != "" {
		facts.Warnings = append(facts.Warnings, facts.RowSecurity)
	}
	if err == nil {
		facts.Sets, err = d.ProbeTables(ctx, conn)
		if err != nil && facts.RowSecurity != "" {
			return facts, facts.Hidden(err)
		}
	}
	if err != nil && errors.Is(Judge(d, err).As, lease.ErrPrivilege) { // the server's own words
		err = d.orLacking(ctx, conn, err)
	}
	return facts, err
}

// Unshared runs f, whose statements go to conn. In a session that other clients share they run in a
// transaction with the settings of a pinned connection: what another client has set there says
// nothing about the database. Where a session keeps the settings, conn is dropped afterwards. While
// the database is busy, f runs again until ctx ends: a role may wait for less time than a migration
// keeps a table locked.
func (d *Dialect) Unshared(ctx context.Context, pinned *sql.Conn, f func() error) error {
	run := f
	if d.PinsSession {
		defer d.pinned(ctx, pinned)()
	} else if d.Pooled() {
		s := conn.NewSession(pinned)
		if err := d.Setup(ctx, s); err != nil {
			return err
		}
		run = func() error { return s.InTx(ctx, f) }
	} else if d.Abandon != nil {
		_ = d.Abandon(ctx, pinned)
	}
	err := run()
	for ; Judge(d, err).Class == Conflict && ctx.Err() == nil; err = run() {
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// pinned gives a connection of the pool the settings of a pinned connection, for its session. The
// function that it returns drops it, because they are not the application's. A server that does not
// take them is another product, or what is asked of it next says what is wrong.
func (d *Dialect) pinned(ctx context.Context, conn *sql.Conn) (drop func()) {
	_ = d.Pin(ctx, conn)
	return func() { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }
}

// ProbeOther runs ProbePool on a connection besides the one that the caller has, if the pool has
// room for it. It waits for it for a second at most.
func ProbeOther(ctx context.Context, pool adapter.Pool, d *Dialect) error {
	sized, ok := pool.(interface{ Stats() sql.DBStats })
	if !ok || d.ProbePool == nil {
		return nil
	}
	if s := sized.Stats(); s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := pool.Conn(short)
	if err != nil {
		return ctx.Err() // another took it
	}
	return oneline.Join(d.ProbePool(ctx, conn), conn.Close())
}

// ProbeTables looks at each of the tables that the user needs, and returns which sets there are.
// Its error says that a table is missing, or a row that the migrations write, or that this code
// does not know their version, or that the user has no right to a set.
func (d *Dialect) ProbeTables(ctx context.Context, conn *sql.Conn) (Sets, error) {
	core := d.settings.core()
	for _, table := range core {
		if err := d.probeTable(ctx, conn, table); err != nil {
			return nil, err
		}
	}
	sets, err := SetsOf(ctx, conn, d)
	for _, set := range append([]Set{Core}, d.settings.besides(sets)...) {
		if err == nil {
			err = sets.Need(set)
		}
	}
	for _, table := range d.settings.tables(sets)[len(core):] {
		if err == nil {
			err = d.probeRights(ctx, conn, table)
		}
	}
	if err == nil {
		err = checkComplete(ctx, conn, d, d.Names().Prefix)
	}
	return sets, err
}

// probeRights looks at a table that no statement is tried on.
func (d *Dialect) probeRights(ctx context.Context, conn *sql.Conn, table string) error {
	if err := d.probeTable(ctx, conn, table); err != nil {
		return err
	}
	lacks, err := d.Lacks(ctx, conn, table)
	if err == nil && len(lacks) > 0 {
		err = d.Lacking(ctx, conn)
	}
	return err
}

// probeTable looks at one table. If the user lacks a right on it, the error names those on the
// others too.
func (d *Dialect) probeTable(ctx context.Context, conn *sql.Conn, table string) error {
	err := d.ProbeTable(ctx, conn, table)
	if errors.Is(err, lease.ErrPrivilege) ||
		errors.Is(err, lease.ErrNoSchema) && d.hidden(ctx, conn, table) {
		return d.orLacking(ctx, conn, err)
	}
	return err
}

// Never the advice to make the tables anew: the tokens of every key would begin again.
const restore = "the rows were deleted, or are hidden from this user; restore them from a backup, with " +
	"floors above every token that was granted"

// InstanceOf reads what tells these tables from any others.
func InstanceOf(ctx context.Context, conn *sql.Conn, d Texts) (string, error) {
	var value []byte
	err := conn.QueryRowContext(ctx, d.Text("instance")).Scan(&value)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = fmt.Errorf("%w: rowlock_meta has no instance: %s", lease.ErrNoSchema, restore)
	case err == nil && len(value) == 0: // or NULL, which SQLite keeps
		err = fmt.Errorf("%w: rowlock_meta has an empty instance; set it to a UUID of random bytes",
			lease.ErrCorrupt)
	}
	return string(value), err
}

// checkComplete returns an error that wraps lease.ErrNoSchema if a row is missing that the
// migration writes: a key whose bucket has no floor could never be created. A deleted floor cannot
// be created again, because its tokens would restart.
func checkComplete(ctx context.Context, conn *sql.Conn, d Texts, prefix string) error {
	var floors int
	err := conn.QueryRowContext(ctx, d.Text("complete")).Scan(&floors)
	if err == nil && floors != lease.Buckets {
		err = fmt.Errorf("%w: %srowlock_floor has %d rows instead of %d: %s", lease.ErrNoSchema, prefix,
			floors, lease.Buckets, restore)
	}
	return err
}

// IsRefusal reports whether a probe has refused the server or its tables. Such an error names the
// reason and the cure.
func IsRefusal(err error) bool {
	return oneline.Is(err, lease.ErrNoSchema, lease.ErrSchemaVersion, lease.ErrWrongDialect,
		lease.ErrReadOnly, lease.ErrPrivilege, lease.ErrTopology, lease.ErrNotDurable, lease.ErrConfig,
		lease.ErrCorrupt, lease.ErrNotSynchronous, lease.ErrUnsupported)
}
