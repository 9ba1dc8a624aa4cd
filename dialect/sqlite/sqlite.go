// Package sqlite is rowlock's SQLite dialect, for SQLite 3.42 and later through modernc.org/sqlite. All processes that lock
// must run on one host: SQLite's file locks cannot be trusted on a network file system. A process that is stopped in the middle
// of a write, ours or its own, keeps the file's one write lock until it wakes: no lease helps against that.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

//go:embed *.sql
var statements embed.FS

const quote = `"`

// Dialect speaks to SQLite.
type Dialect struct {
	sqlstore.Sections
	names sqlstore.Names
}

var _ sqlstore.Dialect = (*Dialect)(nil)

// New returns the dialect. Names that do not pass sqlstore.Names.Check are refused by Open and Migrate.
func New(opts ...dialect.Option) *Dialect {
	n := sqlstore.MakeNames(opts)
	return &Dialect{Sections: sqlstore.ParseFiles(statements, n, quote), names: n}
}

// Name is "sqlite".
func (d *Dialect) Name() string { return "sqlite" }

// Names says where the tables are.
func (d *Dialect) Names() sqlstore.Names { return d.names }

// At returns the same dialect for the rows of another home.
func (d *Dialect) At(home int) sqlstore.Dialect {
	other := *d
	other.names.Home = home
	other.Sections = sqlstore.ParseFiles(statements, other.names, quote)
	return &other
}

// Lanes is 1: a file has one write lock, and connections that wait for it sleep and poll.
func (d *Dialect) Lanes() int { return 1 }

// List encodes keys as JSON.
func (d *Dialect) List(keys []string) any { return sqlstore.HexList(keys) }

// Setup makes the session ours: synchronous=FULL, without which WAL mode forgets the last commits in a power failure, and a
// short wait for the file's write lock. The wait is short because the lane has other work; the store tries again.
func (d *Dialect) Setup(ctx context.Context, s *sqlstore.Session) error {
	abandon(ctx, s.Conn())
	for _, pragma := range []string{`PRAGMA busy_timeout = 100`, `PRAGMA synchronous = FULL`} {
		if _, err := s.Conn().ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	return s.Conn().Raw(func(c any) error {
		_, s.Local = c.(interface{ Serialize() ([]byte, error) }) // modernc's own, and no wrapper that may wait for something else
		return nil
	})
}

// abandon ends a transaction that the application left open on a connection it gave back to its pool: ours would be part of it,
// and never be committed. Where there is none, SQLite says so in an error.
func abandon(ctx context.Context, conn *sql.Conn) { _, _ = conn.ExecContext(ctx, `ROLLBACK`) }

// Acquire looks first under either strategy: a read in the same process costs microseconds, and a loser then never asks for the
// write lock, which the holder may have for as long as it is inside a fence.
func (d *Dialect) Acquire(ctx context.Context, s *sqlstore.Session, _ sqlstore.Strategy, r lease.AcquireRequest) (lease.Acquired, error) {
	var a sqlstore.Answer
	err := s.QueryRow(ctx, d.Text("look"), []any{sqlstore.Bytes(r.Owner), []byte(r.Key)}, a.Dest()...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return d.insert(ctx, s, r)
	case err != nil:
		return lease.Acquired{}, err
	case a.State != sqlstore.StateFree && a.State != sqlstore.StateLocked:
		return a.Acquired()
	}
	out, err := d.write(ctx, s, "acquire-update", millis(r.TTL), sqlstore.Bytes(r.Owner), r.Note, []byte(r.Key))
	if a.State == sqlstore.StateLocked && isBusy(err) {
		return a.Acquired() // expired, and the write lock may be that of its late holder's fence
	}
	return out, err
}

func (d *Dialect) insert(ctx context.Context, s *sqlstore.Session, r lease.AcquireRequest) (lease.Acquired, error) {
	return d.write(ctx, s, "acquire-insert", []byte(r.Key), sqlstore.Bytes(r.Owner), r.Note, millis(r.TTL), lease.Bucket(r.Key))
}

// write runs a statement that returns the granted token, or no row where somebody else was quicker.
func (d *Dialect) write(ctx context.Context, s *sqlstore.Session, section string, args ...any) (lease.Acquired, error) {
	a := sqlstore.Answer{State: sqlstore.StateMine}
	err := s.QueryRow(ctx, d.Text(section), args, &a.Token)
	if errors.Is(err, sql.ErrNoRows) {
		return lease.Acquired{}, sqlstore.ErrRowShape
	}
	if err != nil {
		return lease.Acquired{}, err
	}
	return a.Acquired()
}

// Release clears the owner of one row.
func (d *Dialect) Release(ctx context.Context, s *sqlstore.Session, l lease.Lease) (lease.Released, error) {
	return sqlstore.Release(ctx, s, d, l)
}

// millis rounds up to the clock's resolution: a lease is never shorter than asked for.
func millis(d time.Duration) int64 { return sqlstore.RoundUp(d, time.Millisecond) }

// HandOver gives one row to another owner.
func (d *Dialect) HandOver(ctx context.Context, s *sqlstore.Session, h lease.HandOver) (lease.Acquired, error) {
	return sqlstore.HandOver(ctx, s, d, h, sqlstore.Bytes(h.To.Owner), h.To.Note, millis(h.To.TTL),
		[]byte(h.From.Key), sqlstore.Bytes(h.From.Owner), h.From.Token)
}
