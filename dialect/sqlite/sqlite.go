// Package sqlite is rowlock's SQLite dialect, for SQLite 3.42 and later through modernc.org/sqlite.
// All processes that lock must run on one host, because SQLite's file locks are unreliable on a
// network file system. A process that is stopped in the middle of a write, ours or its own, keeps
// the file's one write lock until it resumes: no lease helps against that.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

//go:embed *.sql
var statements embed.FS

const quote = `"`

// database speaks to SQLite.
type database struct {
	sqlstore.Base
	settings sqlstore.Settings
}

var room = sqlstore.Room{Name: "sqlite", Quote: quote, Files: statements, Open: open}

// New returns the dialect. Open and Migrate refuse names that do not match what [dialect.Prefix]
// and [dialect.Schema] allow.
func New(opts ...dialect.Option) dialect.Dialect { return sqlstore.New(room, opts) }

func open(s sqlstore.Settings, text sqlstore.Sections) (sqlstore.Database, sqlstore.Features) {
	d := &database{sqlstore.Base{Sections: text, Note: sqlstore.AsText, TTL: millis, Waiters: waiters}, s}
	return d, sqlstore.Features{
		// A file has one write lock, and connections that wait for it sleep and poll.
		OneWriter: true, CheckNames: checkNames, Version: d.version,
	}
}

// List encodes keys as JSON.
func (d *database) List(keys []string) any { return sqlstore.HexList(keys) }

// checkNames refuses schemas: an attached database belongs to one connection and is gone on the
// pool's next one.
func checkNames(n sqlstore.Names) error {
	switch {
	case n.Schema != "":
		return fmt.Errorf("%w: schema %q: SQLite has none; use a file of its own, or a table prefix",
			lease.ErrConfig, n.Schema)
	case strings.HasPrefix(strings.ToLower(n.Prefix), "sqlite_"):
		return fmt.Errorf("%w: table prefix %q: SQLite keeps names that begin with sqlite_ for itself",
			lease.ErrConfig, n.Prefix)
	}
	return nil
}

// Setup makes the session's settings: synchronous=FULL, because WAL mode without it forgets the
// last commits in a power failure, and a short wait for the file's write lock. The wait is short
// because the lane has other work; the store tries again.
func (d *database) Setup(ctx context.Context, s *sqlstore.Session) error {
	abandon(ctx, s.Conn())
	for _, pragma := range []string{`PRAGMA busy_timeout = 100`, `PRAGMA synchronous = FULL`} {
		if _, err := s.Conn().ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	return s.Conn().Raw(func(c any) error {
		_, s.Local = c.(interface{ Serialize() ([]byte, error) }) // modernc's own, and no wrapper that may wait for a network
		return nil
	})
}

// abandon ends a transaction that the application left open on a connection it returned to its
// pool, because our statements would be part of it and never be committed. If there is none, SQLite
// returns an error.
func abandon(ctx context.Context, conn *sql.Conn) { _, _ = conn.ExecContext(ctx, `ROLLBACK`) }

// Acquire reads first under either strategy. A read in the same process costs microseconds, and a
// loser then never asks for the write lock, which the holder may have for as long as it is inside a
// fence.
func (d *database) Acquire(ctx context.Context, s *sqlstore.Session, _ sqlstore.Strategy, r lease.AcquireRequest) (lease.Acquired, error) {
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
		return a.Acquired() // expired, and the previous holder's fence may have the write lock
	}
	return out, err
}

func (d *database) insert(ctx context.Context, s *sqlstore.Session, r lease.AcquireRequest) (lease.Acquired, error) {
	return d.write(ctx, s, "acquire-insert", []byte(r.Key), sqlstore.Bytes(r.Owner), r.Note, millis(r.TTL), lease.Bucket(r.Key))
}

// write runs a statement that returns the granted token, or no row if another client was quicker.
func (d *database) write(ctx context.Context, s *sqlstore.Session, section string, args ...any) (lease.Acquired, error) {
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

// millis rounds up to the clock's resolution: a lease is never shorter than asked for.
func millis(d time.Duration) int64 { return sqlstore.RoundUp(d, time.Millisecond) }
