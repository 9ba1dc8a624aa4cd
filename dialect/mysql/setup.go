package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// meaning are the settings that change what statements mean. They are literals, because DEFAULT is
	// the server's global value, which may be what is to be undone. sql_mode is strict, whatever the
	// server defaults to. Safe updates would refuse batches. MySQL does not notice that a client is
	// gone which waits for a table: what was given up would run later. Without derived_merge it takes
	// a parameter of bytes for text (error 3854).
	meaning = `sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1,
			sql_safe_updates = 0, sql_auto_is_null = 0, time_zone = '+00:00',
			foreign_key_checks = 1, unique_checks = 1, lock_wait_timeout = 1,
			sort_buffer_size = 2097152, tmp_table_size = 16777216, max_heap_table_size = 16777216,
			optimizer_switch = 'derived_merge=on'`
	// meaningMariaDB and meaningMySQL are those of one product. A limit on statements would end a
	// renewal that waits.
	meaningMariaDB = `, check_constraint_checks = 1, old_mode = '', query_cache_type = OFF,
			sql_if_exists = 0, max_statement_time = 0, max_recursive_iterations = 1000,
			max_session_mem_used = 9223372036854775807, tmp_disk_table_size = 18446744073709551615`
	meaningMySQL = `, max_execution_time = 0, cte_max_recursion_depth = 1000`

	// plain comes first, and is all that what only reads needs: a limit would cut batches, and under
	// one of 0 rows, or in another character set, the server's version could not be read, nor a time
	// zone be named. A short max_sort_length would order keys by their first bytes, and a frozen
	// timestamp stop the clock; its DEFAULT is the clock, and no global value. Under completion_type =
	// CHAIN every COMMIT would begin the next transaction, and what follows a renewal would never be
	// committed; under RELEASE a ROLLBACK would end the session. 0 is NO_CHAIN, in any character set.
	// MySQL would tell the largest AUTO_INCREMENT of yesterday.
	plain = `SET SESSION sql_select_limit = 18446744073709551615, completion_type = 0,
			sql_big_selects = 1, max_sort_length = 1024, group_concat_max_len = 1048576,
			timestamp = DEFAULT, character_set_client = utf8mb4, character_set_results = utf8mb4,
			collation_connection = utf8mb4_bin /*!80000 , SESSION information_schema_stats_expiry = 0 */`

	// unlock ends a LOCK TABLES of the application's, under which no other table can be used.
	unlock = `UNLOCK TABLES`
	// begin begins a transaction of InTx, in a session that is READ COMMITTED.
	begin = `START TRANSACTION READ WRITE`
)

// meaningOf are the settings for a server of this version.
func meaningOf(version string) string {
	if strings.Contains(version, mariaDB) {
		return meaning + meaningMariaDB
	}
	return meaning + meaningMySQL
}

// meet asks the server for its version and its number of the session. Vitess answers here
// for itself; the variables that the probe reads may be those of the MySQL beneath it.
func meet(ctx context.Context, conn *sql.Conn) (version string, id int64, err error) {
	if _, err = conn.ExecContext(ctx, plain); err == nil {
		err = conn.QueryRowContext(ctx, `SELECT VERSION(), CONNECTION_ID()`).Scan(&version, &id)
	}
	return version, id, cmp.Or(err, genuine(version))
}

// abandoning ends what the application left open, whatever completion_type says of a ROLLBACK: our
// statements would be part of it, and never be committed.
const abandoning = `ROLLBACK AND NO CHAIN NO RELEASE`

func abandon(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, abandoning)
	return err
}

// Setup makes the session's settings. Under READ COMMITTED InnoDB takes no gap locks, which would
// make two keys conflict. Waits for row locks have the shortest bound that MySQL accepts.
//
// @rowlock_done, of section apply, must have a type, because MariaDB takes a variable without one
// for NULL in all of the first statement that sets it. A client that vanishes within a transaction,
// which only the reaper uses, has its rows locked for 4 s.
func (d *database) Setup(ctx context.Context, s *conn.Session) error {
	if err := limit(s); err != nil {
		return err
	}
	version, id, err := meet(ctx, s.Conn())
	if err != nil {
		return err
	}
	s.ID, s.Guard.Begin = id, begin
	settings := []string{
		abandoning,
		unlock,
		`SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED`,
		`SET SESSION TRANSACTION READ WRITE`,
		`SET SESSION ` + meaningOf(version) + `, innodb_lock_wait_timeout = 1, wait_timeout = 28800,
			@rowlock_done = _binary ''`,
	}
	if strings.Contains(version, mariaDB) {
		s.Flavor = mariaDB
		settings = append(settings, `SET SESSION idle_transaction_timeout = 4,
			idle_write_transaction_timeout = 0, idle_readonly_transaction_timeout = 0`)
	} else {
		// MySQL has no such limit, and its limit on idle sessions would end idle pinned connections.
		s.Guard.Before, s.Guard.After = `SET SESSION wait_timeout = 4`,
			`SET SESSION wait_timeout = 28800`
	}
	for _, set := range settings {
		if _, err := s.Conn().ExecContext(ctx, set); err != nil {
			return err
		}
	}
	if err := loggable(ctx, s.Conn()); err != nil {
		return err
	}
	return d.enter(ctx, s.Conn())
}

// pin makes the settings of a migration, whose statements are those of any pinned connection's
// session, and what else changes the tables. Waits for rows have the shortest bound that both
// servers accept. A program that is stopped in it, or whose machine is gone, keeps the lock from
// others for 10 s.
func pin(ctx context.Context, conn *sql.Conn) error {
	version, _, err := meet(ctx, conn)
	if err != nil {
		return err
	}
	set := `SET SESSION ` + meaningOf(version) + `, innodb_lock_wait_timeout = 1,
			wait_timeout = 10, sql_quote_show_create = 1`
	if strings.Contains(version, mariaDB) {
		set += `, alter_algorithm = 'DEFAULT', innodb_compression_default = OFF`
	}
	for _, s := range []string{unlock, set} {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return loggable(ctx, conn)
}

// leastLogged is room in the binary log for the largest of rowlock's batches, twice.
const leastLogged = 4 << 20

// loggable refuses a session that writes statements into the binary log. InnoDB refuses every
// change there (error 1665), because at READ COMMITTED a replica would run them in another order.
//
// It refuses one whose transactions may not be as long there as ours are: a transaction of a few
// bytes too many MySQL rolls back, and answers as if it were committed.
func loggable(ctx context.Context, conn *sql.Conn) error {
	var log bool
	var format string
	var room uint64
	err := conn.QueryRowContext(ctx, `SELECT @@log_bin AND @@SESSION.sql_log_bin,
		@@SESSION.binlog_format, @@GLOBAL.max_binlog_cache_size`).Scan(&log, &format, &room)
	var my *mysql.MySQLError
	switch {
	case errors.As(err, &my) && my.Number == 1193:
		return nil // a server that has no other format than ROW
	case err != nil:
		return err
	case log && format == "STATEMENT":
		return fmt.Errorf("%w: binlog_format is STATEMENT, with which InnoDB refuses changes at READ "+
			"COMMITTED (error 1665): SET GLOBAL binlog_format = 'ROW' (or MIXED), and so in the "+
			"server's configuration and the DSN", lease.ErrConfig)
	case log && room < leastLogged:
		return fmt.Errorf("%w: max_binlog_cache_size is %d, and a commit that MySQL has no room for is "+
			"acknowledged and rolled back: SET GLOBAL max_binlog_cache_size = %d or more, and so in the "+
			"server's configuration", lease.ErrConfig, room, leastLogged)
	}
	return nil
}
