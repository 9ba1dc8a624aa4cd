package optimistic

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// Apply leaves every change to be made alone: the dialect's batches lock rows before they change
// them, which a role may lack the privilege for.
func (d swap) Apply(
	_ context.Context, _ *conn.Session, changes []sqlstore.Change, _ bool,
) ([]sqlstore.Applied, error) {
	return make([]sqlstore.Applied, len(changes)), nil
}

// ApplyAny makes none, as Apply.
func (d swap) ApplyAny(
	_ context.Context, _ *conn.Session, changes []sqlstore.Change, _ int, _ *sqlstore.Within,
) ([]sqlstore.Applied, error) {
	return make([]sqlstore.Applied, len(changes)), nil
}

// Create leaves every row to be made alone.
func (d swap) Create(_ context.Context, _ *conn.Session, changes []sqlstore.Change) ([]sqlstore.Applied, error) {
	return make([]sqlstore.Applied, len(changes)), nil
}
