package schema

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// patience bounds a migration that other sessions keep from running, if ctx has no deadline.
	patience = time.Minute
	// firstPause and longestPause are between two attempts. All statements of clients that one
	// attempt makes wait have run before the next.
	firstPause, longestPause = time.Second, 5 * time.Second
)

// session is a migration: attempts, each on one connection from the lock to the commit.
//
// On PostgreSQL and SQLite an attempt is one transaction, which takes the lock first and reads the
// version after it. So half a migration leaves nothing, and the lock cannot outlive it. A
// session-level advisory lock could, behind a transaction pooler: it would be released on another
// server connection than it was taken on, and stay.
type session struct {
	dialect    *sqlstore.Dialect
	statements sqlstore.Sections
	restore    string // undoes what wait has changed
	named      []Set  // to be made
}

// times puts each database's clock, and the year 9999, into the statements of all.sql.
var times = map[string]*strings.Replacer{
	"postgres": strings.NewReplacer("@now", "clock_timestamp()", "@never", "'9999-01-01 00:00:00+00'"),
	"mysql":    strings.NewReplacer("@now", "UTC_TIMESTAMP(6)", "@never", "'9999-01-01'"),
	"sqlite": strings.NewReplacer("@now", "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
		"@never", "253370764800000"),
}

func newSession(ctx context.Context, caller string, db DB, d dialect.Dialect) (*session, error) {
	of, err := open(d)
	if err == nil {
		err = isnil.Context(caller, ctx)
	}
	if err == nil && isnil.Value(db) {
		err = fmt.Errorf("%w: %s: the database is nil", lease.ErrConfig, caller)
	}
	if err != nil {
		return nil, err
	}
	sql, _ := text.ReadFile("statements/" + d.Name() + ".sql") // there is one for each dialect
	all, _ := text.ReadFile("statements/all.sql")
	s := &session{dialect: of}
	located, err := of.Located(ctx, db)
	if err != nil {
		return nil, s.explain(ctx, db, "find the schema", err)
	}
	s.dialect, s.statements = located, located.Parse(times[d.Name()].Replace(string(all))+string(sql))
	return s, nil
}

var errMigrating = errors.New("another process is migrating")

// run makes attempts until one is not ended by a lock that another session holds. Between two it
// holds no lock and no connection. A statement that waits for a table has every later statement on
// the table wait behind it, renewals too, so an attempt waits for a moment only.
func (s *session) run(
	ctx context.Context, db DB, verb string, steps func(context.Context, *sql.Conn) error,
) error {
	until, bounded := ctx.Deadline()
	if !bounded {
		until = time.Now().Add(patience)
	}
	by, pauses := "", retry.Growing(firstPause, longestPause, 0.3)
	for {
		err := s.attempt(ctx, db, steps)
		again := err == errMigrating || sqlstore.Judge(s.dialect, err).Class == sqlstore.Conflict
		if ctx.Err() != nil {
			again = by != "" // it was kept from running until then
		}
		if err == nil || !again {
			return s.explain(ctx, db, verb, err)
		}
		if ctx.Err() == nil {
			by = s.blockers(ctx, db, cmp.Or(by, "another session"))
		}
		pause := pauses.NextBackOff()
		if time.Until(until) < pause || !retry.Sleep(ctx, pause) {
			return fmt.Errorf("%w: %s: kept from running by %s; end that, or run this again with a ctx "+
				"that lasts longer: %w", lease.ErrBusy, verb, by, err)
		}
		slog.Default().InfoContext(ctx, "rowlock: "+verb+": next attempt", "kept_by", by, "error", err)
	}
}

// attempt runs steps under the lock, and commits if they have succeeded.
func (s *session) attempt(
	ctx context.Context, db DB, steps func(context.Context, *sql.Conn) error,
) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err = s.dialect.Abandon(ctx, conn); err == nil { // what the application has left open
		err = s.begin(ctx, conn)
	}
	if err == nil {
		err = steps(ctx, conn)
	}
	return s.end(context.WithoutCancel(ctx), conn, err)
}

func (s *session) begin(ctx context.Context, conn *sql.Conn) error {
	err := s.wait(ctx, conn)
	if err == nil {
		err = s.exec(ctx, conn, s.statements.Text("begin"))
	}
	if err == nil && s.dialect.Pin != nil {
		err = s.dialect.Pin(ctx, conn)
	}
	if err != nil {
		return err
	}
	locked, err := s.ask(ctx, conn, "lock")
	if err == nil && !locked {
		err = errMigrating
	}
	if bound, ok := s.statements["bound"]; ok && err == nil {
		err = s.exec(ctx, conn, bound)
	}
	return err
}

// end commits, or rolls back after err.
func (s *session) end(ctx context.Context, conn *sql.Conn, err error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	end := "commit"
	if err != nil {
		end = "rollback"
	}
	ended := s.exec(ctx, conn, s.statements.Text(end))
	if ended == nil {
		_, ended = s.ask(ctx, conn, "unlock")
	}
	if ended == nil && s.restore != "" {
		ended = s.exec(ctx, conn, s.restore)
	}
	if ended != nil || s.dialect.PinsSession {
		// Half-way through a transaction, or with settings of ours, it must not go back to the pool.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return cmp.Or(err, ended)
}

// wait makes SQLite wait for the file's write lock. SQLite returns at once unless it is configured
// to wait, and drivers differ in their default. The other databases have the limit in the statement
// itself, or in a setting of Pin.
func (s *session) wait(ctx context.Context, conn *sql.Conn) error {
	setting, ok := s.statements["patience"]
	if !ok {
		return nil
	}
	var before int64
	if err := conn.QueryRowContext(ctx, setting).Scan(&before); err != nil {
		return err
	}
	s.restore = fmt.Sprintf("%s = %d", setting, before)
	return s.exec(ctx, conn, fmt.Sprintf("%s = %d", setting, patience.Milliseconds()))
}

// blockers names the sessions that keep the migration from running, as far as this user may see
// them. Where a look shows none, as when ctx ends meanwhile, it returns what was known before.
func (s *session) blockers(ctx context.Context, db DB, known string) string {
	conn, err := db.Conn(ctx)
	if err != nil {
		return known
	}
	defer conn.Close()
	n := s.dialect.Names()
	for _, section := range []string{"blockers", "oldest"} {
		query, ok := s.statements[section]
		if !ok {
			continue
		}
		var names sql.NullString
		err := conn.QueryRowContext(ctx, query, n.Schema, n.Prefix+"rowlock%").Scan(&names)
		if err == nil && names.String != "" {
			return names.String
		}
	}
	return known
}

// current reports whether there is nothing to do, without the lock and the privileges that a
// migration takes. If it cannot tell, it returns false and the session finds out.
func (s *session) current(ctx context.Context, db DB) bool {
	conn, err := db.Conn(ctx)
	if err != nil {
		return false
	}
	defer conn.Close()
	has, err := s.read(ctx, conn)
	for _, set := range s.wanted(has) {
		if err != nil || has[set].At < Version || sqlstore.CheckVersion(set, has[set]) != nil {
			return false
		}
	}
	return true
}

// read returns the versions of the sets that are there. It asks the catalog first, because on
// PostgreSQL the error of a missing table would end the transaction and appear in the server's log.
func (s *session) read(ctx context.Context, conn *sql.Conn) (sqlstore.Sets, error) {
	there, err := s.exists(ctx, conn, "rowlock_meta.value")
	if err != nil || !there {
		return nil, err
	}
	has, err := sqlstore.SetsOf(ctx, conn, s.dialect)
	if errors.Is(err, lease.ErrNoSchema) {
		err = nil // MySQL was stopped half-way: the version is what is written last
	}
	return has, err
}

// exists reports whether there is a table, with a column that rowlock's of that name has if one is
// named: another program may have a table of that name too.
func (s *session) exists(ctx context.Context, conn *sql.Conn, column string) (bool, error) {
	n := s.dialect.Names()
	table, column, _ := strings.Cut(column, ".")
	return s.ask(ctx, conn, "exists", n.Schema, n.Prefix+table, column)
}

func (s *session) exec(ctx context.Context, conn *sql.Conn, statement string) error {
	_, err := conn.ExecContext(ctx, statement)
	return err
}

func (s *session) ask(ctx context.Context, conn *sql.Conn, section string, args ...any) (yes bool, err error) {
	err = conn.QueryRowContext(ctx, s.statements.Text(section), args...).Scan(&yes)
	return yes, err
}
