package postgres

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// History reads it in one statement.
func (d *database) History(
	ctx context.Context, s *sqlstore.Session, _ *sqlstore.Opened,
) (h sqlstore.History, err error) {
	err = s.QueryRow(ctx, d.Text("era-look"), nil, h.Dest()...)
	return h, err
}

// EraText is a number on a session of the lane's own. Behind a pooler the statement divides by zero
// on any server that was started at another moment.
func (d *database) EraText(s *sqlstore.Session, h sqlstore.History) string {
	if !s.Unprepared {
		return fmt.Sprint(h.Newest)
	}
	return fmt.Sprintf(
		"(%d / ((extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint = %s)::int)",
		h.Newest, h.Server)
}
