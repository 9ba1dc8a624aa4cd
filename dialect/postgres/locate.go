package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// located walks the search_path that the session had at its beginning, as the server itself does:
// with the schemas that exist, those that the user may use, and the user's own. set_config with
// NULL is SET … TO DEFAULT, for this statement alone. The role comes first, because a SET ROLE that
// an application has left changes what "$user" is. CASE has the settings made before the path is
// read.
const located = `WITH own AS MATERIALIZED (
  SELECT set_config('session_authorization', NULL, true), set_config('role', NULL, true),
    set_config('search_path', NULL, true) AS path
), named AS MATERIALIZED (
  SELECT n.oid, n.nspname, p.place
  FROM own AS o CROSS JOIN LATERAL unnest(CASE WHEN o.path IS NOT NULL THEN current_schemas(false) END)
    WITH ORDINALITY AS p (name, place)
  JOIN pg_namespace AS n ON n.nspname = p.name AND n.oid <> pg_my_temp_schema()
)
SELECT s.nspname FROM named AS s
ORDER BY NOT EXISTS (SELECT 1 FROM pg_class AS c
  WHERE c.relnamespace = s.oid AND c.relname = $1::text AND c.relkind IN ('r', 'p', 'v', 'm', 'f')), s.place
LIMIT 1`

// Locate returns the first schema of the session's default search_path that has the table, or else
// the first, as CREATE TABLE would take it. A default is what the DSN, the role or the database
// set.
func (d *database) Locate(ctx context.Context, conn *sql.Conn, table string) (schema string, err error) {
	err = conn.QueryRowContext(ctx, located, table).Scan(&schema)
	switch {
	case isState(err, "57014") && ctx.Err() == nil:
		err = fmt.Errorf("%w; is the statement_timeout of this role, database or DSN too short to read the "+
			"catalog? ALTER ROLE … SET statement_timeout = '5s', or as long in the DSN", err)
	case errors.Is(err, sql.ErrNoRows):
		err = fmt.Errorf("%w: the search_path of this user and DSN leads to no schema that exists and that "+
			"the user may use: create it, or name another (dialect.Schema, or search_path in the DSN)",
			lease.ErrNoSchema)
	}
	return schema, err
}
