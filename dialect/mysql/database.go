package mysql

import (
	"sync/atomic"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const quote = "`"

// database speaks to MySQL and MariaDB.
type database struct {
	sqlstore.Base
	settings sqlstore.Settings
	refused  atomic.Bool // some session, because it is another user's
}

// Rows encodes leases and their times as JSON.
func (d *database) Rows(items []lease.RenewRequest) []any {
	return []any{sqlstore.RenewList(items, conn.Micros)}
}

// List encodes keys as JSON.
func (d *database) List(keys []string) any { return sqlstore.HexList(keys) }

const mariaDB = "MariaDB"
