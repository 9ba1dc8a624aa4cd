package mysql

import (
	"context"
	"strings"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// Setup makes the session's settings. Under READ COMMITTED InnoDB takes no gap locks, which would
// make two keys conflict. sql_mode is strict, whatever the server defaults to, and waits for row
// locks have the shortest bound that MySQL accepts.
//
// Under completion_type = CHAIN every COMMIT would begin the next transaction, and what follows a
// renewal would never be committed. A sql_select_limit would cut batches, safe updates would refuse
// them, and a frozen timestamp would stop the clock.
//
// @rowlock_done, of section apply, must have a type, because MariaDB takes a variable without one
// for NULL in all of the first statement that sets it. A client that vanishes within a transaction,
// which only the reaper uses, has its rows locked for 4 s.
func (d *database) Setup(ctx context.Context, s *sqlstore.Session) error {
	if err := limit(s); err != nil {
		return err
	}
	var version string
	err := s.Conn().QueryRowContext(ctx, `SELECT VERSION(), CONNECTION_ID()`).Scan(&version, &s.ID)
	if err != nil {
		return err
	}
	settings := []string{
		// What the application left open: our statements would be part of it, and never be
		// committed.
		`ROLLBACK AND NO CHAIN`,
		`SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED`,
		`SET SESSION TRANSACTION READ WRITE`,
		`SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1,
			innodb_lock_wait_timeout = 1, completion_type = 'NO_CHAIN', sql_safe_updates = 0,
			sql_select_limit = DEFAULT,
				sql_big_selects = 1, timestamp = DEFAULT,
			@rowlock_done = _binary ''`,
	}
	if strings.Contains(version, mariaDB) {
		s.Flavor = mariaDB
		settings = append(settings, `SET SESSION idle_transaction_timeout = 4`)
	} else {
		// MySQL has no such limit, and its limit on idle sessions would end idle lanes.
		s.Guard.Before, s.Guard.After = `SET SESSION wait_timeout = 4`,
			`SET SESSION wait_timeout = DEFAULT`
	}
	for _, set := range settings {
		if _, err := s.Conn().ExecContext(ctx, set); err != nil {
			return err
		}
	}
	return d.enter(ctx, s.Conn())
}
