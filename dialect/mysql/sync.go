package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// synchronous refuses a session whose commits no replica acknowledges: neither semi-synchronously
// nor as a member of a group. The server reads these variables to every user.
func (d *database) synchronous(ctx context.Context, conn *sql.Conn) (warnings []string, err error) {
	v, err := pairs(ctx, conn, `SHOW SESSION VARIABLES WHERE Variable_name LIKE 'rpl_semi_sync_%'
		OR Variable_name IN ('sql_log_bin', 'group_replication_group_name',
		'group_replication_consistency')`)
	if err != nil {
		return nil, err
	}
	status, err := pairs(ctx, conn, `SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_%'`)
	switch {
	case err != nil:
		return nil, err
	case v["sql_log_bin"] == "OFF":
		return nil, notSynchronous("sql_log_bin is OFF for this session, so that no replica gets its commits",
			"leave it out of the DSN and of init_connect")
	case v["group_replication_group_name"] != "":
		err = inGroup(ctx, conn, v["group_replication_consistency"])
	default:
		warnings, err = semiSync(v, status)
	}
	if err != nil {
		return nil, err
	}
	hidden, err := d.filtered(ctx, conn)
	return append(warnings, hidden...), err
}

func notSynchronous(why, cure string) error {
	return fmt.Errorf("%w: RequireSync: %s; %s", lease.ErrNotSynchronous, why, cure)
}

// pairs reads names and values. Semi-synchronous replication has two vocabularies, and MariaDB the
// older one: it becomes the newer one.
func pairs(ctx context.Context, conn *sql.Conn, query string) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		name = strings.NewReplacer("_master_", "_source_", "slave", "replica").Replace(strings.ToLower(name))
		all[name] = value
	}
	return all, rows.Err()
}

func semiSync(v, status map[string]string) (warnings []string, err error) {
	const s = "rpl_semi_sync_source_"
	clients, _ := strconv.Atoi(status[s+"clients"])
	needs, _ := strconv.Atoi(v[s+"wait_for_replica_count"])
	switch {
	case !on(v[s+"enabled"]):
		return nil, notSynchronous("semi-synchronous replication is not enabled",
			"set rpl_semi_sync_source_enabled = ON (MariaDB: rpl_semi_sync_master_enabled), and its like on "+
				"the replica")
	case v[s+"wait_no_replica"] == "OFF":
		return nil, notSynchronous("rpl_semi_sync_source_wait_no_replica (MariaDB: "+
			"rpl_semi_sync_master_wait_no_slave) is OFF, so that commits wait for no replica once the last "+
			"has left", "set it to ON")
	case clients < max(1, needs):
		return nil, notSynchronous(fmt.Sprintf("%d of %d required semi-synchronous replicas are "+
			"connected", clients, max(1, needs)), "start the replica with rpl_semi_sync_replica_enabled = ON "+
			"(MariaDB: rpl_semi_sync_slave_enabled)")
	case !on(status[s+"status"]):
		return nil, notSynchronous("the server has stopped waiting for its replica, after a timeout",
			"see why the replica lags")
	}
	return shortTimeout(v[s+"timeout"]), nil
}

// shortTimeout warns of a timeout after which the server acknowledges alone.
func shortTimeout(millis string) []string {
	ms, err := strconv.ParseUint(millis, 10, 64)
	if limit := uint64(time.Hour.Milliseconds()); err != nil || ms >= limit {
		return nil
	}
	return []string{"rpl_semi_sync_source_timeout (MariaDB: rpl_semi_sync_master_timeout) is " + millis +
		" ms: when a commit has waited for so long, the server acknowledges what no replica has, until the " +
		"replica is back; set it to more than an outage lasts, such as 86400000"}
}

// inGroup refuses a group of one member, which agrees with itself, and one whose new primary would
// answer before it has applied what was agreed on. See decision 0017.
func inGroup(ctx context.Context, conn *sql.Conn, consistency string) error {
	var online int
	err := conn.QueryRowContext(ctx, `SELECT COUNT(*) FROM performance_schema.replication_group_members
		WHERE member_state = 'ONLINE'`).Scan(&online)
	switch {
	case isNumber(err, 1142):
		return fmt.Errorf("%w: RequireSync: the user may not see the members of its group; "+
			"GRANT SELECT ON performance_schema.replication_group_members TO the user", lease.ErrPrivilege)
	case err != nil:
		return err
	case online < 2:
		return notSynchronous(fmt.Sprintf("%d of 2 required members of the group are online", online),
			"have another member join")
	case consistency == "EVENTUAL":
		return notSynchronous("group_replication_consistency is EVENTUAL, so that a new primary answers before "+
			"it has applied what its predecessor has acknowledged",
			"SET PERSIST group_replication_consistency = 'BEFORE_ON_PRIMARY_FAILOVER'")
	}
	return nil
}
