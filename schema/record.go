package schema

import (
	"context"

	"github.com/pressly/goose/v3/database"
)

// record stands for goose's version table. It is the session's knowledge of rowlock_meta, where
// each migration itself writes, last, the version that it leads to. So the two cannot disagree, and
// tables that another tool made are recognized. The embedded interface covers the methods that
// ApplyVersion does not call.
type record struct {
	database.Store
	session *session
}

// Tablename is for goose's messages.
func (r record) Tablename() string { return r.session.dialect.Fill("rowlock_meta") }

// TableExists keeps goose from making a version table, because the first migration makes
// rowlock_meta.
func (r record) TableExists(context.Context, database.DBTxConn) (bool, error) { return true, nil }

// GetMigration reports whether a version is there. The way down assumes that it is, so that it also
// removes what half a migration has left.
func (r record) GetMigration(_ context.Context, _ database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
	if version > r.session.version && !r.session.blind {
		return nil, database.ErrVersionNotFound
	}
	return &database.GetMigrationResult{IsApplied: true}, nil
}

// Insert is called after a migration has run to its end.
func (r record) Insert(
	_ context.Context, _ database.DBTxConn, made database.InsertRequest,
) error {
	r.session.done, r.session.made = true, made.Version
	return nil
}

// Delete is called after a migration has been undone to its end.
func (r record) Delete(context.Context, database.DBTxConn, int64) error {
	r.session.done = true
	return nil
}
