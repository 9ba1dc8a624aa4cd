// Package sqlite is rowlock's SQLite dialect, for SQLite 3.42 and later through modernc.org/sqlite.
// All processes that lock must run on one host, because SQLite's file locks are unreliable on a
// network file system. A file without locks (nolock=1, vfs=unix-none) is refused when it is opened,
// because two connections prove it. A process that is stopped in the middle of a write, ours or its
// own, keeps the file's one write lock until it resumes: no lease helps against that.
package sqlite

import (
	"embed"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

//go:embed *.sql
var statements embed.FS

var room = sqlstore.Room{Name: "sqlite", Quote: quote, Files: statements, Open: open, Table: table.ForClient}

// New returns the dialect. Open and Migrate refuse names that do not match what [dialect.Prefix]
// and [dialect.Schema] allow.
func New(opts ...dialect.Option) dialect.Dialect { return sqlstore.New(room, opts) }

func open(s sqlstore.Settings, text sqlstore.Sections) (sqlstore.Database, sqlstore.Features) {
	d := &database{sqlstore.Base{
		Sections: text, Note: sqlstore.AsText, TTL: millis,
		Waiters: sqlstore.WaiterList,
	}, s}
	return d, sqlstore.Features{
		// A file has one write lock, and connections that wait for it sleep and poll.
		OneWriter:  true,
		Statements: sqlstore.Statements{AsStored: sqlstore.AsText, Clamps: true},
		OpenChecks: sqlstore.OpenChecks{CheckNames: checkNames, ProbePool: d.probePool},
		OwnTx:      sqlstore.OwnTx{Abandon: abandon},
		Sessions:   sqlstore.Sessions{Version: d.version},
	}
}

// checkNames refuses schemas: an attached database belongs to one connection and is gone on the
// pool's next one.
func checkNames(n sqlstore.Names) error {
	switch {
	case n.Schema != "" && !n.Found:
		return fmt.Errorf("%w: schema %q: SQLite has none; use a file of its own, or a table "+
			"prefix", lease.ErrConfig, n.Schema)
	case strings.HasPrefix(strings.ToLower(n.Prefix), "sqlite_"):
		return fmt.Errorf("%w: table prefix %q: SQLite keeps names that begin with sqlite_ for "+
			"itself", lease.ErrConfig, n.Prefix)
	}
	return nil
}
