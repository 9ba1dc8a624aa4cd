package sqlite

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// History is that of a file since it was opened.
func (d *database) History(
	ctx context.Context, s *conn.Session, o *sqlstore.Opened,
) (h sqlstore.History, err error) {
	path, err := file(ctx, s.Conn())
	if err != nil {
		return h, err
	}
	id, err := o.File(path)
	if err != nil {
		return h, err
	}
	err = s.QueryRow(ctx, d.Text("era-look"), []any{"era/" + id.String()}, h.Dest()...)
	return h, err
}

// EraText is a number.
func (d *database) EraText(_ *conn.Session, h sqlstore.History) string {
	return fmt.Sprint(h.Newest)
}
