package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// History reads it in one statement.
func (d *database) History(
	ctx context.Context, s *conn.Session, _ *sqlstore.Opened,
) (h sqlstore.History, err error) {
	look := strings.Replace(d.Text("era-look"), "@history", d.Text("era-history"), 1)
	err = s.QueryRow(ctx, look, nil, h.Dest()...)
	return h, err
}

// anotherServer is what the statement cannot read as a number, and so says.
const anotherServer = "rowlock: this is another server"

// EraText is a number on a session of the pinned connection's own, which ends with its server, and
// before its database is renamed or dropped. Behind a pooler the statement fails in any other
// history: on a server that was started at another moment, in a copy of the database, and with a
// table that was made anew.
func (d *database) EraText(s *conn.Session, h sqlstore.History) string {
	if !s.Unprepared {
		return fmt.Sprint(h.Newest)
	}
	return d.eraHere(h, "")
}

// eraHere is a number in the history h alone. The server evaluates first, an empty text, too.
func (d *database) eraHere(h sqlstore.History, first string) string {
	return fmt.Sprintf("(CASE (%s) WHEN '%s' THEN %s'%d' ELSE '%s' END)::bigint",
		d.Text("era-history"), h.Name, first, h.Newest, anotherServer)
}

// eraInTx is for a transaction of the application's, which may be at any server. It makes the
// COMMIT as durable as a pinned connection's where the application has it less so.
func (d *database) eraInTx(h sqlstore.History) string {
	return d.eraHere(h, `left(set_config('synchronous_commit',
		CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN `+durable(true)+`
		ELSE current_setting('synchronous_commit') END, true), 0) || `)
}
