package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// EndBlockers looks and then kills, because KILL cannot be part of another statement. A session
// whose transaction ends between the two loses its connection for nothing: that costs one round
// trip, to a client whose transaction was that old.
func (d *database) EndBlockers(
	ctx context.Context, s *sqlstore.Session, key string, waiter int64, least time.Duration,
) ([]sqlstore.Blocker, error) {
	section := "evict-mysql"
	if s.Flavor == mariaDB {
		section = "evict-mariadb"
	}
	found, err := sqlstore.Blockers(ctx, s, d.Text(section),
		[]any{sqlstore.Micros(least), waiter, []byte(key)})
	if err != nil {
		return nil, err
	}
	for i, b := range found {
		if !b.Own || !b.Old {
			continue
		}
		// 1094: the session has ended by itself.
		if _, err := s.Conn().ExecContext(ctx,
			fmt.Sprintf(`KILL CONNECTION %d`, b.ID)); err != nil && !isNumber(err, 1094) {
			return found, err
		}
		found[i].Ended = true
	}
	return found, nil
}

// MayEvict reads what EndBlockers reads.
func (d *database) MayEvict(ctx context.Context, conn *sql.Conn) (grant string, err error) {
	var version string
	if err := conn.QueryRowContext(ctx, `SELECT VERSION()`).Scan(&version); err != nil {
		return "", err
	}
	query, args, grant := d.Text("evict-mysql"), []any{0, 0, []byte{}},
		"GRANT SELECT ON performance_schema.* TO the user"
	if strings.Contains(version, mariaDB) {
		query, args, grant = d.Text("may-evict-mariadb"), nil, "GRANT PROCESS ON *.* TO the user"
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
