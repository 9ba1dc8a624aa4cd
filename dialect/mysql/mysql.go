// Package mysql is rowlock's dialect for MySQL 8.0.19 and later and MariaDB 10.6 and later, through
// go-sql-driver/mysql. It finds out which of the two it speaks to.
package mysql

import (
	"embed"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
)

//go:embed *.sql
var statements embed.FS

var room = sqlstore.Room{Name: "mysql", Quote: quote, Files: statements, Open: open, Table: table.ForClient}

// New returns the dialect. Open and Migrate refuse names that do not match what [dialect.Prefix]
// and [dialect.Schema] allow.
func New(opts ...dialect.Option) dialect.Dialect { return sqlstore.New(room, opts) }

func open(s sqlstore.Settings, text sqlstore.Sections) (sqlstore.Database, sqlstore.Features) {
	d := &database{Base: sqlstore.Base{
		Sections: text, Note: sqlstore.AsBytes, TTL: conn.Micros,
		Waiters: sqlstore.WaiterList,
	}, settings: s}
	return d, sqlstore.Features{
		Statements: sqlstore.Statements{
			AsStored: sqlstore.AsBytes, Clamps: true, ReadsLock: true, CountsOnly: true, Expects: true,
			ShareLock: " LOCK IN SHARE MODE", Spell: spell,
		},
		OpenChecks: sqlstore.OpenChecks{Synchronous: d.synchronous},
		// A COMMIT that was not answered kept its caller for 45 s beyond a context of 3 s.
		OwnTx: sqlstore.OwnTx{
			Abandon: abandon, UnwatchedTx: true, Forgets: true, Pin: pin, PinsSession: true, Plain: plain,
		},
		Instead: sqlstore.Instead{
			Fence: d.fence, PeekOnce: d.peekOnce, LargestValue: d.largestValue,
		},
		Sessions: sqlstore.Sessions{Silence: d.silence},
		Listener: d, Apart: true, Evictor: d,
	}
}
