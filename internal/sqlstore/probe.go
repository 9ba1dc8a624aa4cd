package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/rowlockdb/rowlock/lease"
)

// SchemaVersionOf reads the version of rowlock's tables.
func SchemaVersionOf(ctx context.Context, conn *sql.Conn, d Dialect) (int, error) {
	var text string
	err := conn.QueryRowContext(ctx, d.Text("schema-version")).Scan(&text)
	if err == sql.ErrNoRows {
		return 0, fmt.Errorf("%w: rowlock_meta has no schema_version; run schema.Migrate", lease.ErrNoSchema)
	}
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%w: rowlock_meta says schema_version %q, which is no number; set it to the version the tables have, or drop them and run schema.Migrate", lease.ErrCorrupt, text)
	}
	return v, nil
}

// CheckComplete returns an error that wraps lease.ErrNoSchema unless what the migration writes into the tables is there: a key
// whose bucket has no floor could never be created. A floor that was deleted is not to be made up for: its tokens would begin
// again.
func CheckComplete(ctx context.Context, conn *sql.Conn, d Dialect) error {
	var floors, instances int
	if err := conn.QueryRowContext(ctx, d.Text("complete")).Scan(&floors, &instances); err != nil {
		return err
	}
	const cure = "the tables were half made, or edited; restore them, or drop them and run schema.Migrate"
	switch prefix := d.Names().Prefix; {
	case floors != lease.Buckets:
		return fmt.Errorf("%w: %srowlock_floor has %d rows instead of %d: %s", lease.ErrNoSchema, prefix, floors, lease.Buckets, cure)
	case instances != 1:
		return fmt.Errorf("%w: %srowlock_meta has no instance: %s", lease.ErrNoSchema, prefix, cure)
	}
	return nil
}

// CheckVersion returns an error that wraps lease.ErrSchemaVersion unless the tables are of the version this code knows.
func CheckVersion(v int) error {
	switch {
	case v < SchemaVersion:
		return fmt.Errorf("%w: the tables are version %d and this rowlock needs %d; run schema.Migrate", lease.ErrSchemaVersion, v, SchemaVersion)
	case v > SchemaVersion:
		return fmt.Errorf("%w: the tables are version %d and this rowlock knows only %d; upgrade rowlock", lease.ErrSchemaVersion, v, SchemaVersion)
	}
	return nil
}

// IsRefusal reports whether a probe has refused the server or its tables, in words that say why and what cures it.
func IsRefusal(err error) bool {
	for _, refusal := range []error{
		lease.ErrNoSchema, lease.ErrSchemaVersion, lease.ErrWrongDialect, lease.ErrReadOnly, lease.ErrPrivilege,
		lease.ErrTopology, lease.ErrNotDurable, lease.ErrConfig, lease.ErrCorrupt,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}
