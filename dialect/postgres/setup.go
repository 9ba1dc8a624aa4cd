package postgres

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rowlockdb/rowlock/internal/conn"
)

// relays notes on a session whether its driver asks the server to cancel when a context ends, and
// still reads the answer. A commit that waits for a synchronous standby is then answered with
// success and a warning, which database/sql drops. pgx with its default settings closes the
// connection instead, so that the outcome is unknown.
func relays(s *conn.Session) error {
	return s.Conn().Raw(func(c any) error {
		conn := pgxOf(c)
		if conn == nil {
			s.Relays = true // another driver: lib/pq does
			return nil
		}
		build := conn.Config().BuildContextWatcherHandler
		if build != nil {
			_, closes := build(conn.PgConn()).(*pgconn.DeadlineContextWatcherHandler)
			s.Relays = !closes
		}
		return nil
	})
}

// Setup makes the session's settings, because a pool lends connections on which the application has
// set what it likes, and the role, the database and the DSN have defaults. READ COMMITTED, because
// at a higher level a statement that met a concurrent change fails instead of reading again.
// Commits are durable and every wait is bounded. Plans use the primary key from the first row on,
// because a plan that was made when the table was empty is kept. The server notices a vanished
// client after 20 s, and not after the machine's two hours. The session has a name, by which
// pg_stat_activity shows its client. Setup leaves a session alone that other clients share.
func (d *database) Setup(ctx context.Context, s *conn.Session) error {
	if err := abandon(ctx, s.Conn()); err != nil {
		return err
	}
	if err := relays(s); err != nil {
		return err
	}
	if d.settings.Pooled {
		s.Unprepared = true
		s.Guard.Begin, s.Guard.Within = beginShared, pinsFirst+`; `+pins // in every transaction: see pins
		return wired(s)
	}
	if err := wired(s); err != nil {
		return err
	}
	s.HangUp, s.Guard.Begin = hangUpBelow, begin
	err := withPgx(s.Conn(), func(c *pgx.Conn) error { s.ID = int64(c.PgConn().PID()); return nil })
	if err != nil {
		return err
	}
	_, err = s.Conn().ExecContext(ctx, `SELECT `+d.name()+`, `+meaning(false)+`,
		set_config('search_path', NULL, false),
		set_config('default_transaction_isolation', 'read committed', false),
		set_config('default_transaction_deferrable', 'off', false),
		set_config('default_transaction_read_only', NULL, false),
		set_config('synchronous_commit',
			CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN `+durable(false)+`
				ELSE current_setting('synchronous_commit') END, false),
		set_config('lock_timeout', '1000', false),
		set_config('statement_timeout', '5000', false),
		set_config('idle_in_transaction_session_timeout', '4000', false),
		(SELECT set_config('idle_session_timeout', '0', false)
		 WHERE current_setting('server_version_num')::int >= 140000),
		set_config('plan_cache_mode', 'force_generic_plan', false),
		set_config('jit', 'off', false),
		set_config('enable_seqscan', 'off', false),
		set_config('enable_hashjoin', 'off', false),
		set_config('enable_mergejoin', 'off', false),
		set_config('tcp_keepalives_idle', '10', false),
		set_config('tcp_keepalives_interval', '3', false),
		set_config('tcp_keepalives_count', '3', false)`)
	return err
}

// durable is the level of commits that the role, the database and the server have, and on if that
// is off. NULL resets a setting to that.
func durable(local bool) string {
	return `coalesce(nullif(set_config('synchronous_commit', NULL, ` + strconv.FormatBool(local) +
		`), 'off'), 'on')`
}

// meaning are the settings that change what statements mean, for a transaction or for a session.
// Functions and triggers are found by the search_path, which pinned connections reset; the tables
// are not, because every name has a schema. A backslash in a literal, and NULL in an array, would
// otherwise be text. docs/server-settings.md has every setting, and why the others need no value.
func meaning(local bool) string {
	return strings.ReplaceAll(`set_config('client_encoding', 'UTF8', @local),
		set_config('standard_conforming_strings', 'on', @local),
		set_config('array_nulls', 'on', @local),
		set_config('bytea_output', 'hex', @local),
		set_config('row_security', 'on', @local),
		set_config('exit_on_error', 'off', @local),
		(SELECT set_config('transaction_timeout', '0', @local)
		 WHERE current_setting('server_version_num')::int >= 170000)`,
		"@local", strconv.FormatBool(local))
}

// pin makes the settings of a migration, for its transaction. It may take longer than a statement
// of a pinned connection, and its context bounds it. A program that is stopped in it, or whose
// machine is gone, keeps the lock from others for 10 s, which is how long they wait for it at a
// time. Tables of another kind than heap may have no row locks. What another client has left in a
// session behind a pooler does not count: its role, which may make no tables, and its READ ONLY,
// which the BEGIN has lifted. A default that forbids writing stays in force, as for pins.
func (d *database) pin(ctx context.Context, conn *sql.Conn) error {
	role := `NULL`
	if d.settings.Pooled {
		role = `set_config('session_authorization', NULL, true), set_config('role', NULL, true)`
	}
	_, err := conn.ExecContext(ctx, `SET LOCAL statement_timeout = 0; SELECT `+role+`, `+meaning(true)+`,
		set_config('synchronous_commit', `+durable(true)+`, true),
		set_config('lock_timeout', '10s', true),
		set_config('idle_in_transaction_session_timeout', '10s', true),
		set_config('default_table_access_method', 'heap', true), `+refuseReadOnly)
	return err
}
