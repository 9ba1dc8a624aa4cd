package schema

import (
	"context"

	"github.com/pressly/goose/v3/database"
)

// record is what goose takes for its version table. It is the session's knowledge of rowlock_meta, where each migration
// itself writes, last, the version it leads to: the two cannot come apart, and tables that were made by another tool or by
// hand are known for what they are. The embedded interface stands for what ApplyVersion does not call.
type record struct {
	database.Store
	session *session
}

// Tablename is for goose's messages.
func (r record) Tablename() string { return r.session.dialect.Fill("rowlock_meta") }

// TableExists keeps goose from making a version table: the first migration does.
func (r record) TableExists(context.Context, database.DBTxConn) (bool, error) { return true, nil }

// GetMigration says whether a version is there. The way down takes it for granted, to remove also what is left of half a
// migration.
func (r record) GetMigration(_ context.Context, _ database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
	if version > r.session.version && !r.session.blind {
		return nil, database.ErrVersionNotFound
	}
	return &database.GetMigrationResult{IsApplied: true}, nil
}

// Insert is called when a migration has run to its end.
func (r record) Insert(context.Context, database.DBTxConn, database.InsertRequest) error {
	r.session.done = true
	return nil
}

// Delete is called when a migration has run backwards to its end.
func (r record) Delete(context.Context, database.DBTxConn, int64) error {
	r.session.done = true
	return nil
}
