// Package schema makes the tables: from Go with [Migrate], or with any migration tool from the same files ([FS], [SQL]).
//
// rowlock_meta holds the version of the tables, whoever made them. Migrate goes by it and keeps no other record, so it
// cannot disagree with the tables and never meets the application's own goose_db_version.
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

// Version is the version of the tables that Migrate leads to, and what rowlock_meta then holds as schema_version.
const Version = sqlstore.SchemaVersion

// Migrate brings the tables to [Version]. It may run in any number of processes at once and as often as one likes: the
// first makes the tables, the others wait for it, and where they are up to date already it only reads. Interrupted, it
// leaves nothing behind; on MySQL and MariaDB, which cannot roll back a CREATE TABLE, running it again completes the work.
//
// The schema or database that d names must exist, and the user must be allowed to create tables in it. Tables of a newer
// rowlock are left alone: the error wraps lease.ErrSchemaVersion. Who has a *sqlx.DB passes its field DB.
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

// Down removes the tables, with every lock and every token floor in them: it is no error if there are none, or not all.
// Stop the clients first, and fence nothing afterwards with a token from before: new tables count from 1 again. Tables of a
// newer rowlock are left alone, because there may be some that this one does not know.
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

// provider sets goose up. It calls ApplyVersion only: Up asks for pending migrations before it takes the lock, and then
// waits whole seconds if another process was there at the same moment.
func (s *session) provider(db *sql.DB) (*goose.Provider, error) {
	files, err := migrations(s.dialect)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectCustom, db, files,
		goose.WithStore(record{session: s}),
		goose.WithSessionLocker(s),
		goose.WithIsolateDDL(true),            // no transaction of goose's: the session's own holds the lock
		goose.WithDisableGlobalRegistry(true)) // the application's Go migrations are not ours to run
}

func named(verb string, err error) error {
	if err == nil || errors.Is(err, lease.ErrConfig) {
		return err
	}
	return fmt.Errorf("rowlock: %s: %w", verb, err)
}
