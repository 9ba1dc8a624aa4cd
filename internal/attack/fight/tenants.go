//go:build linux

package fight

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/schema"
)

// AddTenant makes a tenant: a schema or database with tables of the same names, to which workers
// lead connections of their pools. The data that locks protect are named with their own schema from
// then on, as in an application with tenants.
func (d *Database) AddTenant(ctx context.Context, db *sql.DB) error {
	tenant := d.Prefix + "tenant"
	switch d.Name {
	case "postgres":
		d.Placement = "public."
	case "mariadb", "mysql":
		cfg, err := driver.ParseDSN(d.DSN)
		if err != nil {
			return err
		}
		d.Placement = "`" + cfg.DBName + "`."
	default:
		return nil // a file has no other schemas
	}
	if _, err := db.ExecContext(ctx, "CREATE SCHEMA "+tenant); err != nil {
		return err
	}
	d.Tenant = tenant
	return schema.Migrate(ctx, db, d.tenants())
}

func (d Database) tenants() dialect.Dialect {
	of := mysql.New
	if d.Name == "postgres" {
		of = postgres.New
	}
	return of(dialect.Prefix(d.Prefix), dialect.Schema(d.Tenant))
}

// removeTenant removes the tenant.
func (d Database) removeTenant(ctx context.Context, db *sql.DB) error {
	if d.Tenant == "" {
		return nil
	}
	down := schema.Uninstall(ctx, db, d.tenants())
	_, err := db.ExecContext(ctx, "DROP SCHEMA "+d.Tenant)
	return errors.Join(down, err)
}

// strays leads connections of the pool to the tenant's tables, as requests of a tenant do, and
// returns them so.
func (w *worker) strays(ctx context.Context) {
	if w.Database.Tenant == "" {
		return
	}
	lead := "USE "
	if w.Database.Name == "postgres" {
		lead = "SET search_path = "
	}
	for ctx.Err() == nil {
		if conn, err := w.db.Conn(ctx); err == nil {
			// A killed server refuses, which the other calls of the worker report.
			_, _ = conn.ExecContext(ctx, lead+w.Database.Tenant)
			_ = conn.Close()
		}
		Sleep(ctx, 20*time.Millisecond)
	}
}

// named puts the schema and the prefix before the names of the data.
func (d Database) named(query string) string {
	return strings.ReplaceAll(query, "{}", d.Placement+d.Prefix)
}
