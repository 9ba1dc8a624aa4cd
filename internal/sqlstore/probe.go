package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// SchemaVersion is the version of rowlock's tables that this version of rowlock works with, and
// FirstVersion the first that is released.
const SchemaVersion, FirstVersion = 3, 3

// Facts is what a probe learned.
type Facts struct {
	// Server is the product and its version, for messages: "PostgreSQL 15.18".
	Server string
	// Warnings are settings that weaken the guarantees without breaking them, each with its cure.
	Warnings []string
	// RowSecurity names the tables of which the server may hide rows from this user, with the cure;
	// "": none.
	RowSecurity string
}

// Hidden returns err with the reason that comes before all others, if the server may hide rows from
// this user: what is hidden looks missing, and no error of a statement names the policy.
func (f Facts) Hidden(err error) error {
	if err == nil || f.RowSecurity == "" {
		return err
	}
	return fmt.Errorf("%w: %s: %w", lease.ErrPrivilege, f.RowSecurity, err)
}

// tables are those that every client uses. Package once has one more.
var tables = []string{
	"rowlock", "rowlock_floor", "rowlock_queue", "rowlock_wait", "rowlock_meta",
}

// Probe checks the server and then the tables; see Database.Server.
func (d *Dialect) Probe(ctx context.Context, conn *sql.Conn) (Facts, error) {
	facts, err := d.Server(ctx, conn)
	if err == nil && d.RowSecurity != nil {
		facts.RowSecurity, err = d.RowSecurity(ctx, conn, d.settings.tables())
	}
	if facts.RowSecurity != "" {
		facts.Warnings = append(facts.Warnings, facts.RowSecurity)
	}
	if err == nil {
		err = d.ProbeTables(ctx, conn)
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
// transaction with the settings of a lane: what another client has set there says nothing about the
// database. Where a session keeps the settings, conn is dropped afterwards. A server that does not
// take them is another product, or f says what is wrong.
func (d *Dialect) Unshared(ctx context.Context, pinned *sql.Conn, f func() error) error {
	switch {
	case d.PinsSession:
		defer d.pinned(ctx, pinned)()
		return f()
	case !d.Pooled():
		return f()
	}
	s := conn.NewSession(pinned)
	if err := d.Setup(ctx, s); err != nil {
		return err
	}
	return s.InTx(ctx, f)
}

// pinned gives a connection of the pool the settings of a lane, for its session. The function that
// it returns drops it, because they are not the application's. A server that does not take them is
// another product, or what is asked of it next says what is wrong.
func (d *Dialect) pinned(ctx context.Context, conn *sql.Conn) (drop func()) {
	_ = d.Pin(ctx, conn)
	return func() { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }
}

// ProbeOther runs ProbePool on a connection besides the one that the caller has, if the pool has
// room for it. It waits for it for a second at most.
func ProbeOther(ctx context.Context, pool Pool, d *Dialect) error {
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

// ProbeTables looks at each of rowlock's tables. It returns an error if one is missing, or a row
// that the migrations write, or if this code does not know their version.
func (d *Dialect) ProbeTables(ctx context.Context, conn *sql.Conn) error {
	for _, table := range d.settings.tables() {
		if err := d.probeTable(ctx, conn, table); err != nil {
			return err
		}
	}
	version, err := SchemaVersionOf(ctx, conn, d)
	if err == nil {
		err = CheckVersion(version)
	}
	if err == nil {
		err = checkComplete(ctx, conn, d, d.Names().Prefix)
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

// TablesVersion is the version of tables, and the oldest version of the code that may use them.
type TablesVersion struct{ At, From int }

// SchemaVersionOf reads the version of rowlock's tables.
func SchemaVersionOf(ctx context.Context, conn *sql.Conn, d Texts) (v TablesVersion, err error) {
	var at, from []byte
	err = conn.QueryRowContext(ctx, d.Text("schema-version")).Scan(&at, &from)
	if err == sql.ErrNoRows {
		return v, fmt.Errorf("%w: rowlock_meta has no schema_version; run schema.Migrate", lease.ErrNoSchema)
	}
	if err != nil {
		return v, err
	}
	if v.At, err = strconv.Atoi(string(at)); err != nil {
		return v, fmt.Errorf("%w: rowlock_meta says schema_version %q, which is no number; set it to the "+
			"version the tables have", lease.ErrCorrupt, at)
	}
	v.From = compatibleFrom(from, v.At)
	return v, nil
}

// compatibleFrom returns the number of that row, or none if there is no row. Tables without a
// number there are for no code.
func compatibleFrom(text []byte, none int) int {
	n, err := strconv.Atoi(string(text))
	switch {
	case text == nil:
		return none
	case err != nil:
		return math.MaxInt
	}
	return n
}

// InstanceOf reads what tells these tables from any others.
func InstanceOf(ctx context.Context, conn *sql.Conn, d Texts) (string, error) {
	var value sql.NullString
	err := conn.QueryRowContext(ctx, d.Text("instance")).Scan(&value)
	if err == nil && value.String == "" {
		err = fmt.Errorf("%w: rowlock_meta has an empty instance; set it to a UUID of random bytes",
			lease.ErrCorrupt)
	}
	return value.String, err
}

// checkComplete returns an error that wraps lease.ErrNoSchema if a row is missing that the
// migration writes: a key whose bucket has no floor could never be created. A deleted floor cannot
// be created again, because its tokens would restart.
func checkComplete(ctx context.Context, conn *sql.Conn, d Texts, prefix string) error {
	var floors, instances int
	if err := conn.QueryRowContext(ctx, d.Text("complete")).Scan(&floors, &instances); err != nil {
		return err
	}
	// Never the advice to make the tables anew: the tokens of every key would begin again.
	const cure = "the rows were deleted, or are hidden from this user; restore them from a backup, with " +
		"floors above every token that was granted"
	switch {
	case floors != lease.Buckets:
		return fmt.Errorf("%w: %srowlock_floor has %d rows instead of %d: %s", lease.ErrNoSchema,
			prefix, floors, lease.Buckets, cure)
	case instances != 1:
		return fmt.Errorf("%w: %srowlock_meta has no instance: %s", lease.ErrNoSchema, prefix, cure)
	}
	return nil
}

// CheckVersion returns an error that wraps lease.ErrSchemaVersion unless this code may use the
// tables: older ones it refuses, and newer ones if they do.
func CheckVersion(v TablesVersion) error {
	switch {
	case 0 < v.At && v.At < FirstVersion:
		return fmt.Errorf("%w: the tables are version %d, of a rowlock that was never released: stop its "+
			"clients, remove them (schema.Uninstall), and run schema.Migrate", lease.ErrSchemaVersion, v.At)
	case v.At < SchemaVersion:
		return fmt.Errorf("%w: the tables are version %d and this rowlock needs %d; run schema.Migrate",
			lease.ErrSchemaVersion, v.At, SchemaVersion)
	case v.At > SchemaVersion && v.From > SchemaVersion:
		return fmt.Errorf("%w: the tables are version %d and this rowlock knows only %d; upgrade rowlock",
			lease.ErrSchemaVersion, v.At, SchemaVersion)
	}
	return nil
}

// CheckFrom is CheckVersion of tables that are open, by their compatible_from.
func CheckFrom(text []byte) error {
	return CheckVersion(TablesVersion{At: max(SchemaVersion, compatibleFrom(text, 0)), From: SchemaVersion + 1})
}

// IsRefusal reports whether a probe has refused the server or its tables. Such an error names the
// reason and the cure.
func IsRefusal(err error) bool {
	for _, refusal := range []error{
		lease.ErrNoSchema, lease.ErrSchemaVersion, lease.ErrWrongDialect, lease.ErrReadOnly,
		lease.ErrPrivilege, lease.ErrTopology, lease.ErrNotDurable, lease.ErrConfig, lease.ErrCorrupt,
		lease.ErrNotSynchronous, lease.ErrUnsupported,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}
