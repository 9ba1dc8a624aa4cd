package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Server refuses what would lose a granted lock and warns of what might.
func (d *database) Server(ctx context.Context, conn *sql.Conn) (sqlstore.Facts, error) {
	if _, err := pgx.ParseConfig(d.settings.Listen); d.settings.Listen != "" && err != nil {
		return sqlstore.Facts{}, fmt.Errorf("%w: postgres.Listen: %w", lease.ErrConfig, err)
	}
	err := withPgx(conn, func(c *pgx.Conn) error {
		if d.settings.Pooled {
			return cmp.Or(checkPgpool(ctx, c), checkMode(c))
		}
		return cmp.Or(checkPgpool(ctx, c), checkOwn(ctx, c))
	})
	if err != nil {
		return sqlstore.Facts{}, err
	}
	return d.product(ctx, conn)
}

// likeness is in the answers of databases that speak PostgreSQL's protocol, and have row locks or
// clocks of their own. Without "compiled by" it is none of PostgreSQL's builds.
var likeness = regexp.MustCompile(`-YB-|Redshift|Greenplum|Cloudberry|Materialize|QuestDB`)

func (d *database) product(ctx context.Context, conn *sql.Conn) (f sqlstore.Facts, err error) {
	err = conn.QueryRowContext(ctx, `SELECT version()`).Scan(&f.Server)
	switch {
	case ctx.Err() != nil, errors.As(err, new(sqlState)):
		return f, err // Postgres itself says so
	case err != nil:
		return f, sqlstore.ProductError("postgres.New()", "PostgreSQL", err)
	case !strings.HasPrefix(f.Server, "PostgreSQL"), likeness.MatchString(f.Server),
		!strings.Contains(f.Server, ", compiled by "):
		return f, fmt.Errorf("%w: postgres.New() speaks to PostgreSQL alone; this database answers "+
			"%q, and its row locks and its clock may grant a key twice: open rowlock on a PostgreSQL "+
			"server", lease.ErrWrongDialect, f.Server)
	}
	var replica, readOnly bool
	var fsync, sync, fullPages string
	err = conn.QueryRowContext(ctx, `SELECT pg_is_in_recovery(),
		(SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_read_only')::bool,
		current_setting('fsync'),
		current_setting('synchronous_commit'), current_setting('full_page_writes')`).
		Scan(&replica, &readOnly, &fsync, &sync, &fullPages)
	switch {
	case err != nil:
		return f, err
	case replica:
		return f, fmt.Errorf("%w: this server is a standby; connect to the primary "+
			"(target_session_attrs=read-write)", lease.ErrReadOnly)
	case readOnly:
		return f, fmt.Errorf("%w: default_transaction_read_only is on for this user or database; "+
			"turn it off for rowlock's", lease.ErrReadOnly)
	}
	for setting, value := range map[string]string{
		"fsync": fsync, "synchronous_commit": sync, "full_page_writes": fullPages,
	} {
		if value == "off" {
			f.Warnings = append(f.Warnings, setting+" is off: a crash of the server can forget a "+
				"lock that was granted; set it on")
		}
	}
	return f, nil
}

// ProbeTable refuses a table that a crash would empty, or on which the user lacks a right.
func (d *database) ProbeTable(ctx context.Context, conn *sql.Conn, table string) error {
	name := d.settings.Names.Table(table, quote)
	emptied, keyed, lacks, err := d.table(ctx, conn, table)
	switch {
	case err == sql.ErrNoRows:
		return fmt.Errorf("%w: there is no table %s; run schema.Migrate(ctx, db, "+
			"postgres.New(dialect.Prefix(%q))) or the files of schema.FS first (if it was lost, schema.Down "+
			"before, which keeps the tokens or says why not); if they are in another schema, name it (dialect.Schema, or "+
			"search_path in the DSN: what a session has SET does not count)", lease.ErrNoSchema, name,
			d.settings.Names.Prefix)
	case err != nil:
		return err
	case emptied != "":
		return fmt.Errorf("%w: %s is UNLOGGED or temporary, or a partition of it is, and is emptied by a crash, "+
			"after which tokens start again and what was done once is done again; ALTER TABLE %s SET LOGGED",
			lease.ErrNotDurable, name, emptied)
	case !keyed:
		return fmt.Errorf("%w: %s has lost its primary key, as in a restore that was cut short, or a table "+
			"inherits from it, so that two may hold one key; rowlock doctor tells how to make the key, and ALTER "+
			"TABLE … NO INHERIT separates the other", lease.ErrNoSchema, name)
	case lacks != nil:
		return fmt.Errorf("%w: the database user lacks %s on %s", lease.ErrPrivilege,
			strings.Join(lacks, ", "), name)
	}
	return nil
}

// Lacks asks the catalog.
func (d *database) Lacks(ctx context.Context, conn *sql.Conn, table string) ([]string, error) {
	_, _, lacks, err := d.table(ctx, conn, table)
	if err == sql.ErrNoRows {
		err = nil
	}
	return lacks, err
}

// table returns what a crash empties of a table, whether no two of its rows can have the same key,
// and sql.ErrNoRows if there is no such table.
func (d *database) table(ctx context.Context, conn *sql.Conn, table string) (
	emptied string, keyed bool, lacks []string, err error,
) {
	all := []string{"SELECT", "INSERT", "UPDATE", "DELETE"}
	var has [4]bool
	err = conn.QueryRowContext(ctx, `SELECT coalesce((SELECT format('%s.%I', relnamespace::regnamespace, relname)
			FROM pg_class WHERE oid IN (SELECT c.oid UNION SELECT relid FROM pg_partition_tree(c.oid))
			AND relkind <> 'p' AND relpersistence <> 'p' LIMIT 1), ''), relkind NOT IN ('r', 'p') OR EXISTS (
			SELECT 1 FROM pg_index WHERE indrelid = c.oid AND indisunique AND indisvalid)
			AND (relkind = 'p' OR NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = c.oid)),
		has_table_privilege(oid, 'SELECT'), has_table_privilege(oid, 'INSERT'),
		has_table_privilege(oid, 'UPDATE'), has_table_privilege(oid, 'DELETE')
		FROM pg_class AS c WHERE oid = to_regclass($1)`, d.settings.Names.Table(table, quote)).
		Scan(&emptied, &keyed, &has[0], &has[1], &has[2], &has[3])
	if err != nil {
		return "", false, nil, err
	}
	for _, right := range d.settings.Needs(table) {
		if !has[slices.Index(all, right)] {
			lacks = append(lacks, right)
		}
	}
	return emptied, keyed, lacks, nil
}

// rowSecurity asks the server for which tables row-level security holds for this user. It does not
// for a table's owner, unless it is forced, and for roles with BYPASSRLS.
func (d *database) rowSecurity(ctx context.Context, conn *sql.Conn, tables []string) (string, error) {
	asks := make([]string, len(tables))
	for i, table := range tables {
		name := d.settings.Names.Table(table, quote)
		asks[i] = fmt.Sprintf(`SELECT '%s' WHERE row_security_active(to_regclass('%s'))`, name, name)
	}
	rows, err := conn.QueryContext(ctx, strings.Join(asks, " UNION ALL "))
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var active, cures []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return "", err
		}
		active = append(active, name)
		cures = append(cures, "ALTER TABLE "+name+" DISABLE ROW LEVEL SECURITY")
	}
	if err := rows.Err(); err != nil || active == nil {
		return "", err
	}
	return fmt.Sprintf("row-level security is on for %s, and may hide rows from this user: connect as the "+
		"tables' owner or as a role with BYPASSRLS, give the user a policy FOR ALL USING (true), or %s",
		strings.Join(active, ", "), strings.Join(cures, "; ")), nil
}
