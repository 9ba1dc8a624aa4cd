package schema

import (
	"fmt"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// open returns the dialect behind d. It refuses, before anything is sent, names under which the
// tables could not be made.
func open(d dialect.Dialect) (*sqlstore.Dialect, error) {
	if isnil.Value(d) {
		return nil, fmt.Errorf("%w: no dialect", lease.ErrConfig)
	}
	return sqlstore.Of(d), sqlstore.Of(d).CheckNames()
}
