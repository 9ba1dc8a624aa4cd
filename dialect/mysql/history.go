package mysql

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// History reads it in one statement.
func (d *database) History(
	ctx context.Context, s *sqlstore.Session, _ *sqlstore.Opened,
) (h sqlstore.History, err error) {
	section := "era-look"
	if s.Flavor == mariaDB {
		section = "era-look-mariadb"
	}
	names := d.settings.Names
	err = s.QueryRow(ctx, d.Text(section), []any{names.Schema, names.Prefix + "rowlock"}, h.Dest()...)
	return h, err
}

// overflows is a start that no token can be above.
const overflows = "9223372036854775807"

// EraText is a number that overflows on any other server: a proxy may send each statement to
// another one, and nothing tells a client so. An overflow is an error whatever the sql_mode is.
func (d *database) EraText(s *sqlstore.Session, h sqlstore.History) string {
	own := "@@server_uuid = '" + h.Server + "'"
	if s.Flavor == mariaDB {
		own = "@@server_id = " + h.Server
	}
	return fmt.Sprintf("IF(%s, %d, "+overflows+")", own, h.Newest)
}
