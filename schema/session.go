package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pressly/goose/v3/lock"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// patience is how long one Migrate waits for another, on databases that need a limit.
const patience = time.Minute

// session is the connection that a migration runs on, from the lock to the commit.
//
// On PostgreSQL and SQLite the whole migration is one transaction, which takes the lock first and
// reads the version after it. So half a migration leaves nothing, and the lock cannot outlive it. A
// session-level advisory lock could, behind a transaction pooler: it would be released on another
// server connection than it was taken on, and stay. goose's own transaction begins after goose has
// read the version, which is too late to wait for another process.
type session struct {
	dialect    *sqlstore.Dialect
	statements sqlstore.Sections

	blind   bool   // remove every table that there is, recorded or not
	version int64  // of the tables, read under the lock
	done    bool   // the migration has run to its end
	made    int64  // the version that it has led to
	refused error  // why nothing was begun
	restore string // undoes what patience changed
}

var _ lock.SessionLocker = (*session)(nil)

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
	sql, err := text.ReadFile("statements/" + d.Name() + ".sql")
	if err != nil {
		return nil, err
	}
	s := &session{dialect: of}
	located, err := of.Located(ctx, db)
	if sqlstore.IsRefusal(err) {
		return nil, err
	}
	if err != nil {
		return nil, s.explain(ctx, db, "find the schema", err)
	}
	s.dialect, s.statements = located, located.Parse(string(sql))
	return s, nil
}

// SessionLock waits until no other process migrates.
func (s *session) SessionLock(ctx context.Context, conn *sql.Conn) error {
	s.done, s.made = false, 0
	err := s.begin(ctx, conn)
	if err == nil {
		s.version, err = s.read(ctx, conn)
	}
	if err == nil && s.blind {
		err = s.exec(ctx, conn, s.statements.Text("stand-in"))
	}
	if err == nil && s.version > Version {
		err = sqlstore.CheckVersion(int(s.version))
		s.refused = err
	}
	if err != nil {
		// If this fails too, the connection is gone and its lock with it.
		_ = s.SessionUnlock(context.WithoutCancel(ctx), conn)
	}
	return err
}

// SessionUnlock commits a migration that has run to its end and rolls back any other. It looks at
// what the last one has made: a trigger, a policy or a setting can have a statement do less than it
// says.
func (s *session) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	end, unmade := "rollback", error(nil)
	if s.done {
		end = "commit"
		if s.made == Version {
			unmade = s.dialect.ProbeTables(ctx, conn)
		}
	}
	if unmade != nil {
		end = "rollback"
	}
	err := s.exec(ctx, conn, s.statements.Text(end))
	if err == nil {
		_, err = s.ask(ctx, conn, "unlock")
	}
	if err == nil && s.restore != "" {
		err = s.exec(ctx, conn, s.restore)
	}
	switch {
	case err != nil:
		discard(conn) // half-way through a transaction it must not go back to the pool
	case s.dialect.PinsSession:
		drop(conn)
	}
	if unmade != nil {
		s.refused, err = unmade, unmade
	}
	return err
}

func (s *session) begin(ctx context.Context, conn *sql.Conn) error {
	if err := s.wait(ctx, conn); err != nil {
		return err
	}
	if err := s.exec(ctx, conn, s.statements.Text("begin")); err != nil {
		return err
	}
	if s.dialect.Pin != nil {
		if err := s.dialect.Pin(ctx, conn); err != nil {
			return err
		}
	}
	locked, err := s.ask(ctx, conn, "lock")
	if err == nil && !locked {
		err = fmt.Errorf("%w: another process has been migrating for more than %s; try again when it "+
			"has ended", lease.ErrBusy, patience)
		s.refused = err
	}
	return err
}

// wait makes SQLite wait for the file's write lock. SQLite returns at once unless it is configured
// to wait, and drivers differ in their default. The other databases have the limit in the statement
// itself, or need none.
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

// current reports whether there is nothing to do, without the lock and the privileges that a
// migration takes. If it cannot tell, it returns false and the session finds out.
func (s *session) current(ctx context.Context, db DB) bool {
	conn, err := db.Conn(ctx)
	if err != nil {
		return false
	}
	defer conn.Close()
	v, err := s.read(ctx, conn)
	return err == nil && v == Version
}

// read returns the version of the tables, 0 if there are none. It asks the catalog first, because
// on PostgreSQL the error of a missing table would end the transaction and appear in the server's
// log.
func (s *session) read(ctx context.Context, conn *sql.Conn) (int64, error) {
	n := s.dialect.Names()
	there, err := s.ask(ctx, conn, "exists", n.Schema, n.Prefix+"rowlock_meta")
	if err != nil || !there {
		return 0, err
	}
	v, err := sqlstore.SchemaVersionOf(ctx, conn, s.dialect)
	if errors.Is(err, lease.ErrNoSchema) {
		err = nil // MySQL was stopped half-way: the version is what is written last
	}
	return int64(v), err
}

func (s *session) exec(ctx context.Context, conn *sql.Conn, statement string) error {
	_, err := conn.ExecContext(ctx, statement)
	return err
}

func (s *session) ask(ctx context.Context, conn *sql.Conn, section string, args ...any) (yes bool, err error) {
	err = conn.QueryRowContext(ctx, s.statements.Text(section), args...).Scan(&yes)
	return yes, err
}
