package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// synchronous refuses a session whose commits wait for no standby. If fewer are connected than a
// commit waits for, it is refused too: every commit would wait, and no call could say why.
func (d *database) synchronous(ctx context.Context, conn *sql.Conn) (warnings []string, err error) {
	var level, names string
	var waited, hidden int
	err = conn.QueryRowContext(ctx, `SELECT current_setting('synchronous_commit'),
		current_setting('synchronous_standby_names'),
		count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),
		count(*) FILTER (WHERE sync_state IS NULL AND pid IS NOT NULL)
		FROM pg_stat_replication`).Scan(&level, &names, &waited, &hidden)
	refuse := func(why, cure string) ([]string, error) {
		return nil, fmt.Errorf("%w: RequireSync: %s; %s", lease.ErrNotSynchronous, why, cure)
	}
	switch {
	case err != nil:
		return nil, err
	case names == "":
		return refuse("synchronous_standby_names is empty, so that a commit waits for no standby",
			"ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)' and SELECT pg_reload_conf()")
	case level == "off", level == "local":
		return refuse("synchronous_commit is "+level+" for this user, so that a commit waits for no standby",
			"set it to on for rowlock's user, in its database and in the DSN")
	case waited >= sqlstore.Standbys(names):
		if level == "remote_write" {
			return []string{"synchronous_commit is remote_write: a lock that was granted is lost if the primary " +
				"is, and the standby's machine crashes before it has written to its disk; set it to on"}, nil
		}
		return nil, nil
	case hidden > 0:
		return nil, fmt.Errorf("%w: RequireSync: the user may not see whether a standby is synchronous; "+
			"GRANT pg_read_all_stats TO the user", lease.ErrPrivilege)
	}
	connected := "no such standby is connected"
	if waited > 0 {
		connected = fmt.Sprintf("%d of %d such standbys are connected", waited, sqlstore.Standbys(names))
	}
	return refuse(fmt.Sprintf("synchronous_standby_names is %q and %s, so that every commit would wait",
		names, connected), "start the standby, and name it by its application_name")
}
