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

// anotherServer is what the statement cannot read as a number, and so says.
const anotherServer = "rowlock: this is another server"

// EraText is a number on a session of the lane's own. Behind a pooler the statement fails on any
// server that was started at another moment.
func (d *database) EraText(s *sqlstore.Session, h sqlstore.History) string {
	if !s.Unprepared {
		return fmt.Sprint(h.Newest)
	}
	return fmt.Sprintf(`(CASE (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint
  WHEN %s THEN '%d' ELSE '%s' END)::bigint`, h.Server, h.Newest, anotherServer)
}
