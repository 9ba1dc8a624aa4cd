package sqlite

import (
	"context"
	"database/sql"
)

// Locate returns the name of the file that the connection was opened with. Without it a temporary
// table of a session, which comes first, would stand for ours.
func (d *database) Locate(context.Context, *sql.Conn, string) (string, error) { return "main", nil }
