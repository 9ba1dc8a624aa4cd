package mysql

import (
	"context"

	"github.com/rowlockdb/rowlock/dialect"
)

// Apply leaves every change to be made alone.
func (d *Dialect) Apply(_ context.Context, _ *dialect.Session, changes []dialect.Change, _ bool) ([]dialect.Applied, error) {
	return make([]dialect.Applied, len(changes)), nil
}

// Create leaves every row to be made alone.
func (d *Dialect) Create(_ context.Context, _ *dialect.Session, changes []dialect.Change) ([]dialect.Applied, error) {
	return make([]dialect.Applied, len(changes)), nil
}
