package mysql

import "github.com/rowlockdb/rowlock/internal/sqlstore"

const quote = "`"

// database speaks to MySQL and MariaDB.
type database struct {
	sqlstore.Base
	settings sqlstore.Settings
}

// List encodes keys as JSON.
func (d *database) List(keys []string) any { return sqlstore.HexList(keys) }

const mariaDB = "MariaDB"
