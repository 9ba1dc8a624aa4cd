package sqlite

import (
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const quote = `"`

// database speaks to SQLite.
type database struct {
	sqlstore.Base
	settings sqlstore.Settings
}

// Rows encodes leases and their times as JSON.
func (d *database) Rows(items []lease.RenewRequest) []any {
	return []any{sqlstore.RenewList(items, conn.Micros)}
}

// List encodes keys as JSON.
func (d *database) List(keys []string) any { return sqlstore.HexList(keys) }

// millis rounds up to the clock's resolution: a lease is never shorter than asked for.
func millis(d time.Duration) int64 { return conn.RoundUp(d, time.Millisecond) }
