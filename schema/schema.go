// Package schema makes rowlock's tables: from Go with [Migrate], or with any migration tool from
// the same files ([FS], [SQL]).
//
// rowlock_meta has the version of the tables, whichever tool made them. Migrate goes by it and
// keeps no other record, so that it cannot disagree with the tables and never touches the
// application's goose_db_version.
package schema

import (
	"context"
	"errors"

	"github.com/pressly/goose/v3"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// Version is the version of the tables that Migrate leads to. rowlock_meta then has it as
// schema_version.
const Version = sqlstore.SchemaVersion

// Migrate brings the tables to [Version]. It may run in any number of processes at once, and any
// number of times: the first makes the tables, the others wait for it. If the tables are up to date
// it only reads. If it is interrupted it leaves nothing behind. MySQL and MariaDB cannot roll back
// a CREATE TABLE; there, running it again completes the work.
//
// The schema or database that d names must exist, and the user must be allowed to create tables in
// it. Its errors are those of rowlock.Open: lease.ErrWrongDialect if the database is another
// product, lease.ErrNoSchema if the schema or database is missing, lease.ErrPrivilege,
// lease.ErrReadOnly. Tables of a newer rowlock stay as they are: the error wraps
// lease.ErrSchemaVersion.
//
// db is any pool with the method Conn of *sql.DB, such as *sqlx.DB. Of another, as *bun.DB, pass
// its field DB. ctx bounds the call. On MySQL, MariaDB and SQLite a process waits a minute at most
// for another's migration; then the error is lease.ErrBusy.
func Migrate(ctx context.Context, db DB, d dialect.Dialect) error {
	s, err := newSession(ctx, "schema.Migrate", db, d)
	if err != nil || s.current(ctx, db) {
		return err
	}
	return s.explain(ctx, db, "migrate", s.up(ctx, db))
}

func (s *session) up(ctx context.Context, db DB) error {
	p, end, err := s.provider(db)
	defer end()
	for v := int64(1); err == nil && v <= Version; v++ {
		_, err = p.ApplyVersion(ctx, v, true)
		if errors.Is(err, goose.ErrAlreadyApplied) {
			err = nil
		}
	}
	return err
}

// Down removes the tables, with every lock and every token floor in them. Missing tables are no
// error. Stop the clients first, and afterwards fence nothing with a token from before, because new
// tables count from 1 again. Tables of a newer rowlock stay as they are, because there may be some
// that this version does not know. db and the errors are as for Migrate.
func Down(ctx context.Context, db DB, d dialect.Dialect) error {
	s, err := newSession(ctx, "schema.Down", db, d)
	if err != nil {
		return err
	}
	s.blind = true
	return s.explain(ctx, db, "remove tables", s.down(ctx, db))
}

func (s *session) down(ctx context.Context, db DB) error {
	p, end, err := s.provider(db)
	defer end()
	for v := int64(Version); err == nil && v >= 1; v-- {
		_, err = p.ApplyVersion(ctx, v, false)
	}
	return err
}

// provider sets goose up. The caller uses ApplyVersion only. Up would look for pending migrations
// before it takes the lock, and would then wait whole seconds for a process that started at the
// same moment.
func (s *session) provider(db DB) (p *goose.Provider, end func() error, err error) {
	plain, end := asDB(db, s.dialect.PinsSession)
	files, err := migrations(s.dialect, marked)
	if err != nil {
		return nil, end, err
	}
	p, err = goose.NewProvider(goose.DialectCustom, plain, files,
		goose.WithStore(record{session: s}),
		goose.WithSessionLocker(s),
		goose.WithIsolateDDL(true),            // the session's own transaction holds the lock
		goose.WithDisableGlobalRegistry(true)) // runs none of the application's Go migrations
	return p, end, err
}
