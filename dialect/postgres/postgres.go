// Package postgres is rowlock's PostgreSQL dialect, for PostgreSQL 13 and later through
// jackc/pgx/v5 (its stdlib or, for the in-transaction operations, pgx.Tx itself).
package postgres

import (
	"embed"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
)

//go:embed *.sql
var statements embed.FS

var room = sqlstore.Room{Name: "postgres", Quote: quote, Files: statements, Open: open, Table: table.ForClient}

// New returns the dialect. Open and Migrate refuse names that do not match what [dialect.Prefix]
// and [dialect.Schema] allow. Open refuses a DSN that cannot be parsed.
func New(opts ...dialect.Option) dialect.Dialect { return sqlstore.New(room, opts) }

func open(s sqlstore.Settings, text sqlstore.Sections) (sqlstore.Database, sqlstore.Features) {
	d := &database{
		Base:     sqlstore.Base{Sections: text, Note: sqlstore.AsText, TTL: conn.Micros, Waiters: waiters},
		settings: s,
		plain:    [...]string{text.Text("acquire-update"), text.Text("acquire-insert")},
		release:  text.Text("release"), relaxed: text.Text("release-relaxed"),
	}
	f := sqlstore.Features{
		Statements: sqlstore.Statements{
			Dollars: true, AsStored: sqlstore.AsText, ShareLock: " FOR SHARE",
		},
		OpenChecks: sqlstore.OpenChecks{Synchronous: d.synchronous, RowSecurity: d.rowSecurity},
		OwnTx:      sqlstore.OwnTx{Abandon: abandon, Over: over, Pin: d.pin, EraInTx: d.eraInTx},
		Sessions:   sqlstore.Sessions{Silence: d.silence, Piper: d},
		Listener:   d, Evictor: d,
	}
	if s.Pooled {
		f.PinShared = pinShared
	}
	return d, f
}
