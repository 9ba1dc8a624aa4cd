package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Server refuses what would lose a granted lock and warns of what might.
func (d *database) Server(ctx context.Context, conn *sql.Conn) (sqlstore.Facts, error) {
	vars, facts, err := d.variables(ctx, conn)
	if err == nil {
		err = check(vars)
	}
	if err == nil {
		err = d.unshadow(ctx, conn)
	}
	if err == nil {
		facts.Warnings = doubts(vars)
		err = loggable(ctx, conn)
	}
	return facts, err
}

// variables reads the variables that matter. The map lacks a variable that a flavor does not have.
func (d *database) variables(ctx context.Context, conn *sql.Conn) (
	vars map[string]string, f sqlstore.Facts, err error,
) {
	rows, err := conn.QueryContext(ctx, `SHOW GLOBAL VARIABLES WHERE Variable_name IN (
		'version', 'version_comment', 'read_only', 'super_read_only', 'innodb_read_only',
		'wsrep_on', 'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'innodb_doublewrite',
		'group_replication_group_name', 'group_replication_single_primary_mode')`)
	if ctx.Err() != nil || errors.As(err, new(*mysql.MySQLError)) {
		return nil, f, err // MySQL itself says so
	}
	if err != nil {
		return nil, f, sqlstore.ProductError("mysql.New()", "MySQL and MariaDB", err)
	}
	defer rows.Close()
	vars = make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, f, err
		}
		vars[name] = value
	}
	f.Server = vars["version_comment"] + " " + vars["version"]
	return vars, f, cmp.Or(rows.Err(), genuine(f.Server))
}

// likeness is in the answers of databases that speak MySQL's protocol and have no InnoDB, or that
// spread a transaction over several.
var likeness = regexp.MustCompile(`-TiDB-|-Vitess|PlanetScale|OceanBase|SingleStore`)

func genuine(server string) error {
	if !likeness.MatchString(server) {
		return nil
	}
	return fmt.Errorf("%w: mysql.New() speaks to MySQL and MariaDB alone; this database answers %q, "+
		"and its row locks and its clock may grant a key twice: open rowlock on a MySQL or MariaDB "+
		"server", lease.ErrWrongDialect, server)
}

func check(vars map[string]string) error {
	switch {
	case on(vars["wsrep_on"]):
		return fmt.Errorf("%w: wsrep_on: a Galera cluster can lose a committed change and show a "+
			"stale row even when healthy, so that two nodes grant one key; use a server that "+
			"replicates asynchronously from one primary", lease.ErrTopology)
	case vars["group_replication_group_name"] != "" &&
		vars["group_replication_single_primary_mode"] == "OFF":
		return fmt.Errorf("%w: group_replication_single_primary_mode is OFF: with several primaries "+
			"row locks are local to one; switch to single-primary mode", lease.ErrTopology)
	}
	for _, v := range []string{"super_read_only", "read_only", "innodb_read_only"} {
		if on(vars[v]) {
			return fmt.Errorf("%w: %s is on, as on a replica; connect to the primary",
				lease.ErrReadOnly, v)
		}
	}
	return nil
}

func doubts(vars map[string]string) (warnings []string) {
	if v := vars["innodb_flush_log_at_trx_commit"]; v != "" && v != "1" {
		warnings = append(warnings, "innodb_flush_log_at_trx_commit is "+v+": a crash of the server "+
			"can forget a lock that was granted; set it to 1")
	}
	if on(vars["log_bin"]) && vars["sync_binlog"] != "1" {
		warnings = append(warnings, "sync_binlog is "+vars["sync_binlog"]+": after a crash a replica "+
			"can lack a lock that was granted; set it to 1")
	}
	return warnings
}

// on is true for any other value: MariaDB 12 has read_only = NO_LOCK and NO_LOCK_NO_ADMIN, which
// forbid more than ON.
func on(v string) bool { return v != "" && v != "OFF" && v != "0" }

// ProbeTable refuses a table without its key, or in an engine without row locks or durability.
func (d *database) ProbeTable(ctx context.Context, conn *sql.Conn, table string) error {
	var engine sql.NullString
	var keyed bool
	schema, name := d.settings.Names.Schema, d.settings.Names.Prefix+table
	err := conn.QueryRowContext(ctx, `SELECT engine, EXISTS (SELECT 1 FROM information_schema.statistics
		WHERE table_schema = ? AND table_name = ? AND index_name = 'PRIMARY')
		FROM information_schema.tables WHERE table_schema = ? AND table_name = ?`,
		schema, name, schema, name).Scan(&engine, &keyed)
	name = d.settings.Names.Table(table, quote)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: there is no table %s that this user may see; run schema.Migrate(ctx, "+
			"db, mysql.New(dialect.Prefix(%q))) or the files of schema.FS first (if it was lost, schema.Down "+
			"before, which keeps the tokens or says why not), and check the user's privileges", lease.ErrNoSchema, name,
			d.settings.Names.Prefix)
	case err != nil:
		return err
	case !strings.EqualFold(engine.String, "InnoDB"):
		return fmt.Errorf("%w: %s is stored by %s, which has no row locks or forgets them in a crash; "+
			"ALTER TABLE %s ENGINE=InnoDB", lease.ErrNotDurable, name, engine.String, name)
	case !keyed:
		return fmt.Errorf("%w: %s has lost its primary key, as in a restore that was cut short, so that two "+
			"may hold one key; rowlock doctor tells how to make it", lease.ErrNoSchema, name)
	}
	return nil
}

// columns are a column of each table, for statements that are prepared and never run.
var columns = map[string]string{
	"rowlock": "note", "rowlock_floor": "floor", "rowlock_queue": "note", "rowlock_meta": "value",
	"rowlock_hold": "made_at", "rowlock_wait": "note", "rowlock_once": "result",
	"rowlock_member": "note", "rowlock_limit": "slots", "rowlock_forced": "reason", "rowlock_trace": "detail",
	"rowlock_latch": "state", "rowlock_party": "party",
}

// Lacks prepares a statement of each kind, because the server checks the rights when it prepares.
// The catalog does not show rights that come from a role. A table that is not there lacks all that
// the user has not: the server does not tell.
func (d *database) Lacks(ctx context.Context, conn *sql.Conn, table string) (
	rights []string, err error,
) {
	name, column := d.settings.Names.Table(table, quote), quote+columns[table]+quote
	statements := map[string]string{
		"SELECT": `SELECT ` + column + ` FROM ` + name,
		"INSERT": `INSERT INTO ` + name + ` (` + column + `) VALUES (?)`,
		"UPDATE": `UPDATE ` + name + ` SET ` + column + ` = ?`,
		"DELETE": `DELETE FROM ` + name,
	}
	for _, right := range d.settings.Needs(table) {
		st, err := conn.PrepareContext(ctx, statements[right])
		switch {
		case err == nil:
			_ = st.Close()
		case isNumber(err, 1142), isNumber(err, 1143):
			rights = append(rights, right)
		case ctx.Err() != nil:
			return nil, err
		}
	}
	return rights, nil
}
