package optimistic

import (
	"context"

	"github.com/rowlockdb/rowlock/dialect"
)

// Apply leaves every change to be made alone: the dialect's batches lock rows before they change them, which a role may not be allowed.
func (d swap) Apply(_ context.Context, _ *dialect.Session, changes []dialect.Change, _ bool) ([]dialect.Applied, error) {
	return make([]dialect.Applied, len(changes)), nil
}

// Create leaves every row to be made alone.
func (d swap) Create(_ context.Context, _ *dialect.Session, changes []dialect.Change) ([]dialect.Applied, error) {
	return make([]dialect.Applied, len(changes)), nil
}
