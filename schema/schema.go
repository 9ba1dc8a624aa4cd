// Package schema makes rowlock's tables: from Go with [Migrate], or with any migration tool from
// the same files ([FS], [SQL]).
//
// rowlock_meta has the version of the tables, whichever tool made them. Migrate goes by it and
// keeps no other record, so that it cannot disagree with the tables and never touches the
// application's goose_db_version.
package schema

import (
	"context"
	"database/sql"
	"strings"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// Version is the version of the tables that Migrate leads to. rowlock_meta then has it as
// schema_version.
const Version = sqlstore.SchemaVersion

// first is the version that the first migration leads to.
const first = sqlstore.FirstVersion

// DB is what Migrate needs of a pool: *sql.DB and *sqlx.DB have it.
type DB = dialect.Pool

// Migrate brings the tables to [Version]. It may run in any number of processes at once, and any
// number of times: the first makes the tables, the others wait for it. If the tables are up to date
// it only reads. If it is interrupted it leaves nothing behind. MySQL and MariaDB cannot roll back
// a CREATE TABLE; there, running it again completes the work.
//
// Clients may go on meanwhile. A change of a table that is in use, by a backup or by a long
// transaction, waits for it for a second at most, because every later statement on the table waits
// behind the change. Then Migrate undoes what it has done, pauses for 1 to 5 s with no lock, and
// tries again. It tells so to slog.Default, at level Info. The deadline of ctx says for how long it
// tries, which is a minute without one. Then the error is lease.ErrBusy, and names the sessions
// that keep it from running, as far as the user may see them.
//
// The schema or database that d names must exist, and the user must be allowed to create tables in
// it. Its errors are those of rowlock.Open: lease.ErrWrongDialect if the database is another
// product, lease.ErrNoSchema if the schema or database is missing, lease.ErrPrivilege,
// lease.ErrReadOnly. Tables of a newer rowlock stay as they are: the error wraps
// lease.ErrSchemaVersion.
//
// db is any pool with the method Conn of *sql.DB, such as *sqlx.DB. Of another, as *bun.DB, pass
// its field DB.
func Migrate(ctx context.Context, db DB, d dialect.Dialect) error {
	return migrate(ctx, "schema.Migrate", db, d)
}

func migrate(ctx context.Context, caller string, db DB, d dialect.Dialect) error {
	s, err := newSession(ctx, caller, db, d)
	if err != nil || s.current(ctx, db) {
		return err
	}
	return s.run(ctx, db, "migrate", s.up)
}

// up runs the migrations that the tables lack. Then it looks at what they have made: a trigger, a
// policy or a setting can have a statement do less than it says.
func (s *session) up(ctx context.Context, conn *sql.Conn) error {
	version, err := s.read(ctx, conn)
	if err != nil {
		return err
	}
	if version.At > Version || 0 < version.At && version.At < first {
		return sqlstore.CheckVersion(sqlstore.Core, version)
	}
	all, err := migrations(s.dialect)
	if err != nil {
		return err
	}
	for _, m := range all[max(0, version.At-first+1):] {
		if err := s.each(ctx, conn, m.up); err != nil {
			return err
		}
	}
	_, err = s.dialect.ProbeTables(ctx, conn)
	return err
}

// each runs the statements of a migration one by one. A driver takes several at once only if its
// DSN says so.
func (s *session) each(ctx context.Context, conn *sql.Conn, statements string) error {
	for statement := range strings.SplitAfterSeq(statements, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if err := s.exec(ctx, conn, statement); err != nil {
			return err
		}
	}
	return nil
}
