package postgres

import (
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const quote = `"`

// database speaks to PostgreSQL.
type database struct {
	sqlstore.Base
	settings sqlstore.Settings
	// The statements of a lock that is free, found once.
	plain            [2]string // by strategy
	release, relaxed string
}

// Rows encodes leases and their times as arrays.
func (d *database) Rows(items []lease.RenewRequest) []any { return renewArrays(items) }

// List encodes keys as an array.
func (d *database) List(keys []string) any {
	a := newArray(len(keys))
	for _, k := range keys {
		a.bytea(k)
	}
	return a
}
