package sqlite

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/conn"
)

// version reads the counter by which SQLite itself checks whether its cache is still valid.
func (d *database) version(ctx context.Context, s *conn.Session) (v int64, err error) {
	err = s.QueryRow(ctx, d.Text("version"), nil, &v)
	return v, err
}
