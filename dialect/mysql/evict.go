package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// EndBlockers looks and then kills, because KILL cannot be part of another statement. A session
// whose transaction ends between the two loses its connection for nothing: that costs one round
// trip, to a client whose transaction was that old.
func (d *database) EndBlockers(
	ctx context.Context, s *conn.Session, row sqlstore.Expired, waiter int64,
	least time.Duration,
) ([]sqlstore.Blocker, error) {
	section := "evict-mysql"
	if s.Flavor == mariaDB {
		section = "evict-mariadb"
	}
	found, err := sqlstore.Blockers(ctx, s, row.Section(d, section), []any{waiter, []byte(row.Key)})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && section == "evict-mysql" {
		return nil, shows(ctx, s.Conn())
	}
	for i, b := range found {
		if b.Session == 0 {
			found[i].Prepared = prepared(ctx, s.Conn())
		}
		if !b.Own || b.Age < least || b.Session == 0 {
			continue
		}
		// 1094: the session has ended by itself.
		if _, err := s.Conn().ExecContext(ctx,
			fmt.Sprintf(`KILL CONNECTION %d`, b.Session)); err != nil && !isNumber(err, 1094) {
			return found, err
		}
		found[i].Ended = true
	}
	return found, nil
}

// errHidden is why nothing that blocks is found: an empty answer does not say that nothing does.
var errHidden = fmt.Errorf("%w: %w: performance_schema is OFF, with which MySQL would show the session: %s",
	lease.ErrUnsupported, adapter.ErrUnseen, turnOn)

const turnOn = "start the server with performance_schema = ON"

// shows returns an error if the server does not record which transaction has a row locked.
func shows(ctx context.Context, conn *sql.Conn) error {
	var on bool
	err := conn.QueryRowContext(ctx, `SELECT @@performance_schema`).Scan(&on)
	if err == nil && !on {
		return errHidden
	}
	return err
}

// prepared names the prepared transactions of the server by what ends them. Which of several has a
// row locked, no table says.
func prepared(ctx context.Context, conn *sql.Conn) string {
	rows, err := conn.QueryContext(ctx, `XA RECOVER`)
	if err != nil {
		return "XA ROLLBACK of one that XA RECOVER lists"
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var format int64
		var first, second int
		var xid []byte
		if rows.Scan(&format, &first, &second, &xid) == nil && first+second == len(xid) {
			all = append(all, fmt.Sprintf("XA ROLLBACK %s,%s,%d", quoted(xid[:first]), quoted(xid[first:]), format))
		}
	}
	if rows.Err() != nil || len(all) == 0 {
		return "XA ROLLBACK of one that XA RECOVER lists"
	}
	if len(all) > 3 {
		all = append(all[:3], "another that XA RECOVER lists")
	}
	return strings.Join(all, " or ")
}

// quoted is a part of an xid as a literal.
func quoted(part []byte) string {
	for _, c := range part {
		if c < ' ' || c > '~' || c == '\'' || c == '\\' {
			return fmt.Sprintf("X'%X'", part)
		}
	}
	return "'" + string(part) + "'"
}

// MayEvict reads what EndBlockers reads.
func (d *database) MayEvict(ctx context.Context, conn *sql.Conn) (grant string, err error) {
	var version string
	if err := conn.QueryRowContext(ctx, `SELECT VERSION()`).Scan(&version); err != nil {
		return "", err
	}
	query, args, grant := sqlstore.Expired{Why: sqlstore.LateLease}.Section(d, "evict-mysql"), []any{0, []byte{}},
		"GRANT SELECT ON performance_schema.* TO the user"
	if strings.Contains(version, mariaDB) {
		query, args, grant = d.Text("may-evict-mariadb"), nil, "GRANT PROCESS ON *.* TO the user"
	}
	if !strings.Contains(version, mariaDB) {
		if err := shows(ctx, conn); errors.Is(err, errHidden) {
			return turnOn, nil
		}
	}
	rows, err := conn.QueryContext(ctx, query, args...)
	if err == nil {
		for rows.Next() {
		}
		err = oneline.Join(rows.Err(), rows.Close())
	}
	if errors.Is(d.Classify(err).As, lease.ErrPrivilege) {
		return grant, nil
	}
	return "", err
}
