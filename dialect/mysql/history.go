package mysql

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// History has the session keep it, and reads what is known of it.
func (d *database) History(
	ctx context.Context, s *conn.Session, _ *sqlstore.Opened,
) (h sqlstore.History, err error) {
	section := "era-session"
	if s.Flavor == mariaDB {
		section = "era-session-mariadb"
	}
	names := d.settings.Names
	_, err = s.Exec(ctx, d.Text(section), names.Schema, names.Prefix+"rowlock")
	if err == nil {
		err = s.QueryRow(ctx, d.Text("era-look"), nil, h.Dest()...)
	}
	return h, err
}

// overflows is a start that no token can be above.
const overflows = "9223372036854775807"

// EraText is a number that overflows in any other session: a proxy may send each statement to
// another server, or to one that was restored meanwhile, and nothing tells a client so. An overflow
// is an error whatever the sql_mode is.
func (d *database) EraText(_ *conn.Session, h sqlstore.History) string {
	return fmt.Sprintf("IF(@rowlock_history = x'%x', %d, "+overflows+")", h.Name, h.Newest)
}
