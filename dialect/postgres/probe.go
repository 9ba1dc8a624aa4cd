package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Probe refuses what would lose a granted lock and warns of what might.
func (d *database) Probe(ctx context.Context, conn *sql.Conn) (sqlstore.Facts, error) {
	if _, err := pgx.ParseConfig(d.settings.Listen); d.settings.Listen != "" && err != nil {
		return sqlstore.Facts{}, fmt.Errorf("%w: postgres.Listen: %w", lease.ErrConfig, err)
	}
	err := withPgx(conn, func(c *pgx.Conn) error {
		if d.settings.Pooled {
			return checkMode(c)
		}
		return checkOwn(ctx, c)
	})
	if err != nil {
		return sqlstore.Facts{}, err
	}
	facts, err := d.server(ctx, conn)
	if err == nil && d.settings.Pooled {
		var more []string
		more, err = boundless(ctx, conn)
		facts.Warnings = append(facts.Warnings, more...)
	}
	if err == nil {
		facts.SchemaVersion, err = sqlstore.ProbeTables(ctx, conn, d, d.settings.Names)
	}
	return facts, err
}

func (d *database) server(ctx context.Context, conn *sql.Conn) (f sqlstore.Facts, err error) {
	err = conn.QueryRowContext(ctx, `SELECT version()`).Scan(&f.Server)
	switch {
	case ctx.Err() != nil, errors.As(err, new(sqlState)):
		return f, err // Postgres itself says so
	case err != nil:
		return f, fmt.Errorf("%w: postgres.New() speaks to PostgreSQL; this database answers %w",
			lease.ErrWrongDialect, err)
	case !strings.HasPrefix(f.Server, "PostgreSQL"):
		return f, fmt.Errorf("%w: postgres.New() speaks to PostgreSQL; this database answers %q",
			lease.ErrWrongDialect, f.Server)
	}
	var replica, readOnly bool
	var fsync, sync, fullPages string
	err = conn.QueryRowContext(ctx, `SELECT pg_is_in_recovery(),
		current_setting('transaction_read_only')::bool, current_setting('fsync'),
		current_setting('synchronous_commit'), current_setting('full_page_writes')`).
		Scan(&replica, &readOnly, &fsync, &sync, &fullPages)
	switch {
	case err != nil:
		return f, err
	case replica:
		return f,
			fmt.Errorf(
				"%w: this server is a standby; connect to the primary "+
					"(target_session_attrs=read-write)", lease.ErrReadOnly)
	case readOnly:
		return f,
			fmt.Errorf(
				"%w: default_transaction_read_only is on for this user or database; turn it off "+
					"for rowlock's", lease.ErrReadOnly)
	}
	for setting, value := range map[string]string{
		"fsync": fsync, "synchronous_commit": sync,
		"full_page_writes": fullPages,
	} {
		if value == "off" {
			f.Warnings = append(f.Warnings,
				setting+" is off: a crash of the server can forget a lock that was granted; "+
					"set it on")
		}
	}
	return f, nil
}

// ProbeTable refuses a table that a crash would empty, or on which the user lacks a right.
func (d *database) ProbeTable(ctx context.Context, conn *sql.Conn, table string) error {
	name := d.settings.Names.Table(table, quote)
	var persistence string
	var rights [4]bool
	err := conn.QueryRowContext(ctx, `SELECT relpersistence,
		has_table_privilege(oid, 'SELECT'), has_table_privilege(oid, 'INSERT'),
		has_table_privilege(oid, 'UPDATE'), has_table_privilege(oid, 'DELETE')
		FROM pg_class WHERE oid = to_regclass($1)`, name).
		Scan(&persistence, &rights[0], &rights[1], &rights[2], &rights[3])
	switch {
	case err == sql.ErrNoRows:
		return fmt.Errorf(
			"%w: there is no table %s; run schema.Migrate(ctx, db, postgres.New()) or the files "+
				"of schema.FS first", lease.ErrNoSchema, name)
	case err != nil:
		return err
	case persistence != "p":
		return fmt.Errorf(
			"%w: %s is UNLOGGED or temporary and is emptied by a crash, after which tokens start "+
				"again and what was done once is done again; ALTER TABLE %s SET LOGGED",
			lease.ErrNotDurable, name, name)
	}
	return d.lacking(table, name, rights)
}

// needs lists the rights on each table: SELECT, INSERT, UPDATE, DELETE.
var needs = map[string][4]bool{
	"rowlock":       {true, true, true, true},
	"rowlock_floor": {true, false, true, false},
	"rowlock_queue": {true, true, true, true},
	"rowlock_meta":  {true, false, false, false},
	"rowlock_once":  {true, true, true, true},
}

// sweeping lists the rights that only sweeping needs, if a floor is read without a lock.
var sweeping = map[string][4]bool{
	"rowlock":       {3: true},
	"rowlock_floor": {2: true},
}

func (d *database) lacking(table, name string, has [4]bool) error {
	var missing []string
	for i, right := range []string{"SELECT", "INSERT", "UPDATE", "DELETE"} {
		if needs[table][i] && !has[i] && !(d.settings.Unswept && sweeping[table][i]) {
			missing = append(missing, right)
		}
	}
	if missing == nil {
		return nil
	}
	rights := strings.Join(missing, ", ")
	return fmt.Errorf("%w: the database user lacks %s on %s; GRANT %s ON %s TO the user",
		lease.ErrPrivilege, rights, name, rights, name)
}
