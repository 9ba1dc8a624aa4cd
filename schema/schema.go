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
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
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
// it. Tables of a newer rowlock stay as they are: the error wraps lease.ErrSchemaVersion. For a
// *sqlx.DB pass its field DB.
func Migrate(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
	s, err := newSession(db, d)
	if err != nil || s.current(ctx, db) {
		return err
	}
	p, err := s.provider(db)
	for v := int64(1); err == nil && v <= Version; v++ {
		_, err = p.ApplyVersion(ctx, v, true)
		if errors.Is(err, goose.ErrAlreadyApplied) {
			err = nil
		}
	}
	return named("migrate", err)
}

// Down removes the tables, with every lock and every token floor in them. Missing tables are no
// error. Stop the clients first, and afterwards fence nothing with a token from before, because new
// tables count from 1 again. Tables of a newer rowlock stay as they are, because there may be some
// that this version does not know.
func Down(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
	s, err := newSession(db, d)
	if err != nil {
		return err
	}
	s.blind = true
	p, err := s.provider(db)
	for v := int64(Version); err == nil && v >= 1; v-- {
		_, err = p.ApplyVersion(ctx, v, false)
	}
	return named("remove tables", err)
}

// provider sets goose up. The caller uses ApplyVersion only. Up would look for pending migrations
// before it takes the lock, and would then wait whole seconds for a process that started at the
// same moment.
func (s *session) provider(db *sql.DB) (*goose.Provider, error) {
	files, err := migrations(s.dialect)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectCustom, db, files,
		goose.WithStore(record{session: s}),
		goose.WithSessionLocker(s),
		goose.WithIsolateDDL(true),            // the session's own transaction holds the lock
		goose.WithDisableGlobalRegistry(true)) // runs none of the application's Go migrations
}

func named(verb string, err error) error {
	if err == nil || errors.Is(err, lease.ErrConfig) {
		return err
	}
	return fmt.Errorf("rowlock: %s: %w", verb, err)
}
