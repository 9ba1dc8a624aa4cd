// Package sqlstore is what each database is told and what its answers mean.
//
// A [Dialect] is a description without state: names, SQL text and the meaning of errors. One room
// per database (dialect/postgres, dialect/mysql, dialect/sqlite) is the only package that imports
// that database's driver. The SQL stands in .sql files per room, under the same section names
// everywhere.
package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Room is what the package of one kind of database provides.
type Room struct {
	// Name is "postgres", "mysql" (which speaks to MariaDB too) or "sqlite".
	Name string
	// Quote is put around the name of a table or a column.
	Quote string
	// Files has the .sql files.
	Files fs.FS
	// Open returns the database for these settings, and what it can do that others cannot.
	Open func(Settings, Sections) (Database, Features)
	// Table opens the store on the tables, which stands above this package.
	Table func(context.Context, adapter.DB, *Dialect, adapter.OpenOptions) (adapter.Opened, error)
}

// Dialect speaks to one kind of database.
type Dialect struct {
	Database
	Features
	Sections Sections
	adapter.Opening

	room     Room
	settings Settings
}

// New returns the dialect of a room. It checks no names: see CheckNames.
func New[O ~func(*adapter.Place)](r Room, opts []O) *Dialect {
	var s Settings
	var at adapter.Place
	for i, o := range opts {
		if o == nil {
			s.Missing = cmp.Or(s.Missing, i+1)
			continue
		}
		o(&at)
	}
	s.Names = Names{Schema: at.Schema, Prefix: at.Prefix}
	s.Listen, s.Pooled = at.Listen, at.Pooled
	return r.dialect(s)
}

func (r Room) dialect(s Settings) *Dialect {
	return r.with(s, ParseFiles(r.Files, s.Names, r.Quote))
}

func (r Room) with(s Settings, text Sections) *Dialect {
	d := &Dialect{Sections: text, room: r, settings: s}
	open := func(ctx context.Context, db adapter.DB, o adapter.OpenOptions) (adapter.Opened, error) {
		return r.Table(ctx, db, d, o)
	}
	d.Opening = adapter.Opening{Dialect: d, Table: open}
	d.Database, d.Features = r.Open(s, d.Sections)
	return d
}

// again returns the dialect with other settings. The statements depend on the names alone.
func (d *Dialect) again(s Settings) *Dialect {
	if s.Names != d.settings.Names {
		return d.room.dialect(s)
	}
	return d.room.with(s, d.Sections)
}

// Name is the room's.
func (d *Dialect) Name() string { return d.room.Name }

// Names says where the tables are. The caller checks it.
func (d *Dialect) Names() Names { return d.settings.Names }

// Pooled says that pinned connections share the server's sessions with other clients.
func (d *Dialect) Pooled() bool { return d.settings.Pooled }

// CheckNames returns an error that wraps lease.ErrConfig for names that the database cannot have,
// and for an option of New that was nil.
func (d *Dialect) CheckNames() error {
	if n := d.settings.Missing; n > 0 {
		return fmt.Errorf("%w: %s.New: option %d is nil; leave it out", lease.ErrConfig, d.Name(), n)
	}
	err := d.Names().Check()
	if err == nil && d.Features.CheckNames != nil {
		err = d.Features.CheckNames(d.Names())
	}
	return err
}

// Fill puts the tables' names into SQL; see Names.Fill.
func (d *Dialect) Fill(sql string) string { return d.Names().Fill(sql, d.room.Quote) }

// Parse cuts the text of a .sql file into its statements, fills in the names, and labels each with
// its section's name: the server shows and logs the label.
func (d *Dialect) Parse(text string) Sections {
	return d.Names().sections(CutSections(text), d.room.Quote)
}

// Connections returns how many connections can write at a time: 0 means any number.
func (d *Dialect) Connections() int {
	if d.OneWriter {
		return 1
	}
	return 0
}

// At returns the same dialect for the rows of another placement. A row has one placement. To the
// statements of every other placement it is a key that they must not touch, so that two kinds of
// lock cannot both hold it.
func (d *Dialect) At(placement int) *Dialect {
	s := d.settings
	s.Placement = placement
	return d.again(s)
}

// Unswept returns the same dialect for a user who need not have the rights that only sweeping
// needs.
func (d *Dialect) Unswept() *Dialect {
	s := d.settings
	s.Unswept = true
	return d.again(s)
}

// Serving returns the same dialect for a package that needs one more set. once and latch lock no
// key.
func (d *Dialect) Serving(set Set) *Dialect {
	s := d.settings
	s.Set, s.Lockless = set, set != ForUpdate
	return d.again(s)
}

// IdentifiedAs returns the same dialect for the sessions of one client.
func (d *Dialect) IdentifiedAs(identity string) *Dialect {
	s := d.settings
	s.Identity = identity
	return d.again(s)
}

// Wrapped returns a dialect whose database is what wrap makes of d's.
func (d *Dialect) Wrapped(wrap func(Database, Features) (Database, Features)) *Dialect {
	room := d.room
	room.Open = func(s Settings, text Sections) (Database, Features) {
		return wrap(d.room.Open(s, text))
	}
	return room.with(d.settings, d.Sections)
}

// ReadOnly reports whether err says that the server takes no writes.
func (d *Dialect) ReadOnly(err error) bool { return errors.Is(Judge(d, err).As, lease.ErrReadOnly) }

// Of returns the Dialect behind a public one, which a caller may have embedded in a type.
func Of(d adapter.Opener) *Dialect { return adapter.OpeningOf(d).Dialect.(*Dialect) }

// Database is what a kind of database does in its own way. Its methods run once, without retries.
// An error is about the whole call and is meant for Classify.
type Database interface {
	Texts
	// List encodes keys as the single parameter of a section that takes a list, so that one
	// prepared statement serves every size.
	List(keys []string) any
	// Rows encodes leases, each with its time in µs, as the last parameters of a section that
	// takes such a list. A lease's owner may name whatever has 16 bytes.
	Rows(items []lease.RenewRequest) []any
	// Setup makes the settings of a session that rowlock keeps to itself.
	Setup(ctx context.Context, s *conn.Session) error

	// History returns what the server says of itself, and what the table has of it.
	History(ctx context.Context, s *conn.Session, o *Opened) (History, error)
	// EraText is the start of the newest era of a history as an expression, which fails on any
	// other server if the session may come to one.
	EraText(s *conn.Session, h History) string

	// Locate returns the schema to which the connection has led since it was opened, whatever was
	// sent on it since: the first that has the table, or else that in which one would be made. Its
	// error is ErrStrayed if only another connection can tell.
	Locate(ctx context.Context, conn *sql.Conn, table string) (schema string, err error)
	// Server checks whether locks on this server can be trusted. An error wraps one of lease's
	// refusals and names the cure; warnings are for the log.
	Server(ctx context.Context, conn *sql.Conn) (Facts, error)
	// ProbeTable checks what a crash would do to a table, and whether it is there. It may also
	// return an error that wraps lease.ErrPrivilege.
	ProbeTable(ctx context.Context, conn *sql.Conn, table string) error
	// Lacks returns the rights on a table that the user needs and lacks: SELECT, INSERT, UPDATE,
	// DELETE. A table that is not there lacks none, unless the server cannot tell.
	Lacks(ctx context.Context, conn *sql.Conn, table string) ([]string, error)

	Classifier
	// Native knows the errors of its own product, the server or the driver. A transaction that
	// returns one is in no other product, even if the server has ended its session.
	Native(err error) bool
	// Collided reports whether err means that another transaction ended this one, or stopped
	// it, so that the database asks for all of it to be run again. A lock timeout is not that.
	Collided(err error) bool
	// Overtaken reports whether the database refused to change a row because another
	// transaction has changed it since this one began.
	Overtaken(err error) bool

	// Acquire, Renew, Release and HandOver are the statements whose sequence differs between
	// databases.
	Acquire(ctx context.Context, s *conn.Session, strategy adapter.Strategy, req lease.AcquireRequest) (
		lease.Acquired, error)
	Renew(ctx context.Context, s *conn.Session, reqs []lease.RenewRequest) ([]lease.Renewed, error)
	Release(ctx context.Context, s *conn.Session, l lease.Lease) (lease.Released, error)
	// HandOver changes the owner of one row. Not granted: the row does not name From.
	HandOver(ctx context.Context, s *conn.Session, h lease.HandOver) (lease.Acquired, error)

	Batch
	Traces
	Queue
	RowLocks
	// ClaimOnce makes the key's row in tx, or returns the row that exists. The row becomes
	// visible to others exactly if tx is committed, and until then no other transaction can
	// claim the key. ClaimOnce waits for another transaction that has the key, for about wait;
	// 0 means not at all, if the database can be told so. After OnceInFlight tx must be rolled
	// back. Together with an error it says that another claim of the key caused the error.
	ClaimOnce(ctx context.Context, tx lease.Runner, c OnceClaim, wait time.Duration) (OnceRow,
		error)
}
