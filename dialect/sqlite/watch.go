package sqlite

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// version reads the counter that SQLite itself looks at to see whether what it has cached still holds.
func (d *database) version(ctx context.Context, s *sqlstore.Session) (v int64, err error) {
	err = s.QueryRow(ctx, d.Text("version"), nil, &v)
	return v, err
}
