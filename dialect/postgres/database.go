package postgres

import "github.com/rowlockdb/rowlock/internal/sqlstore"

const quote = `"`

// database speaks to PostgreSQL.
type database struct {
	sqlstore.Base
	settings sqlstore.Settings
}

// List encodes keys as an array literal.
func (d *database) List(keys []string) any { return byteaArray(keys) }
