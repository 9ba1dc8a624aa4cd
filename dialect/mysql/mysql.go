// Package mysql is rowlock's dialect for MySQL 8.0.19 and later and MariaDB 10.6 and later, through
// go-sql-driver/mysql. It finds out which of the two it speaks to.
package mysql

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"strings"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

//go:embed *.sql
var statements embed.FS

const quote = "`"

// database speaks to MySQL and MariaDB.
type database struct {
	sqlstore.Base
	settings sqlstore.Settings
}

var room = sqlstore.Room{Name: "mysql", Quote: quote, Files: statements, Open: open}

// New returns the dialect. Open and Migrate refuse names that do not match what [dialect.Prefix]
// and [dialect.Schema] allow.
func New(opts ...dialect.Option) dialect.Dialect { return sqlstore.New(room, opts) }

func open(s sqlstore.Settings, text sqlstore.Sections) (sqlstore.Database, sqlstore.Features) {
	d := &database{sqlstore.Base{Sections: text, Note: sqlstore.AsBytes, TTL: sqlstore.Micros, Waiters: waiters}, s}
	return d, sqlstore.Features{
		TextAsBytes: true, Clamps: true, ReadsLock: true, ShareLock: " LOCK IN SHARE MODE",
		// A COMMIT that was not answered kept its caller for 45 s beyond a context of 3 s.
		UnwatchedTx: true,
		Fence:       d.fence, PeekOnce: d.peekOnce, Silence: d.silence, Evictor: d,
	}
}

// List encodes keys as JSON.
func (d *database) List(keys []string) any { return sqlstore.HexList(keys) }

const mariaDB = "MariaDB"

// Setup makes the session's settings. Under READ COMMITTED InnoDB takes no gap locks, which would
// make two keys conflict. sql_mode is strict, whatever the server defaults to, and waits for row
// locks have the shortest bound that MySQL accepts.
//
// Under completion_type = CHAIN every COMMIT would begin the next transaction, and what follows a
// renewal would never be committed. A sql_select_limit would cut batches, safe updates would refuse
// them, and a frozen timestamp would stop the clock.
//
// @rowlock_done, of section apply, must have a type, because MariaDB takes a variable without one
// for NULL in all of the first statement that sets it. A client that vanishes within a transaction,
// which only the reaper uses, has its rows locked for 4 s.
func (d *database) Setup(ctx context.Context, s *sqlstore.Session) error {
	var version string
	if err := s.Conn().QueryRowContext(ctx, `SELECT VERSION()`).Scan(&version); err != nil {
		return err
	}
	settings := []string{
		// What the application left open: our statements would be part of it, and never be
		// committed.
		`ROLLBACK AND NO CHAIN`,
		`SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED`,
		`SET SESSION TRANSACTION READ WRITE`,
		`SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1, innodb_lock_wait_timeout = 1,
			completion_type = 'NO_CHAIN', sql_safe_updates = 0, sql_select_limit = DEFAULT, sql_big_selects = 1, timestamp = DEFAULT,
			@rowlock_done = _binary ''`,
	}
	if strings.Contains(version, mariaDB) {
		s.Flavor = mariaDB
		settings = append(settings, `SET SESSION idle_transaction_timeout = 4`)
	} else {
		// MySQL has no such limit, and its limit on idle sessions would end idle lanes.
		s.Guard.Before, s.Guard.After = `SET SESSION wait_timeout = 4`, `SET SESSION wait_timeout = DEFAULT`
	}
	for _, set := range settings {
		if _, err := s.Conn().ExecContext(ctx, set); err != nil {
			return err
		}
	}
	return nil
}

// Acquire tries in the strategy's order: a row that is free takes one round trip. It reads a row
// that is not.
func (d *database) Acquire(ctx context.Context, s *sqlstore.Session, strategy sqlstore.Strategy, r lease.AcquireRequest) (lease.Acquired, error) {
	if strategy == sqlstore.Insert {
		if out, err := d.insert(ctx, s, r); err == nil || !isDuplicate(err) && !errors.Is(err, errNotTaken) {
			return out, err
		}
	}
	if out, err := d.take(ctx, s, r); !errors.Is(err, errNotTaken) {
		return out, err
	}
	return d.look(ctx, s, r)
}

// look answers for a row that is held, creates one that is absent, and takes one that is free or
// expired.
func (d *database) look(ctx context.Context, s *sqlstore.Session, r lease.AcquireRequest) (lease.Acquired, error) {
	a, err := d.read(ctx, s, r)
	var out lease.Acquired
	switch {
	case errors.Is(err, sql.ErrNoRows):
		if out, err = d.insert(ctx, s, r); isDuplicate(err) || errors.Is(err, errNotTaken) {
			err = sqlstore.ErrRowShape
		}
		return out, err
	case err == nil && a.State == sqlstore.StateFree:
		out, err = d.take(ctx, s, r)
	case err == nil && a.State == sqlstore.StateLocked:
		out, err = d.update(ctx, s, "acquire-expired", r, []byte(r.Key))
	default:
		return answered(a, err)
	}
	if !errors.Is(err, errNotTaken) {
		return out, err
	}
	return answered(d.read(ctx, s, r))
}

func answered(a sqlstore.Answer, err error) (lease.Acquired, error) {
	if err != nil {
		return lease.Acquired{}, err
	}
	return a.Acquired()
}

func (d *database) read(ctx context.Context, s *sqlstore.Session, r lease.AcquireRequest) (a sqlstore.Answer, err error) {
	err = s.QueryRow(ctx, d.Text("look"), []any{sqlstore.Bytes(r.Owner), []byte(r.Key)}, a.Dest()...)
	return a, err
}

// errNotTaken: the row is not free, or not there, or another transaction has it locked.
var errNotTaken = errors.New("not taken")

// take gives a free row to the request's owner.
func (d *database) take(ctx context.Context, s *sqlstore.Session, r lease.AcquireRequest) (lease.Acquired, error) {
	key := []byte(r.Key)
	return d.update(ctx, s, "acquire-update", r, key, key)
}

func (d *database) update(ctx context.Context, s *sqlstore.Session, section string, r lease.AcquireRequest, keys ...any) (lease.Acquired, error) {
	args := append([]any{sqlstore.Bytes(r.Owner), []byte(r.Note), sqlstore.Micros(r.TTL)}, keys...)
	res, err := s.Exec(ctx, d.Text(section), args...)
	if isLockWait(err) {
		return lease.Acquired{}, errNotTaken
	}
	return granted(res, err)
}

func (d *database) insert(ctx context.Context, s *sqlstore.Session, r lease.AcquireRequest) (lease.Acquired, error) {
	return granted(s.Exec(ctx, d.Text("acquire-insert"),
		[]byte(r.Key), sqlstore.Bytes(r.Owner), []byte(r.Note), sqlstore.Micros(r.TTL), lease.Bucket(r.Key), []byte(r.Key)))
}

// changed returns errNotTaken for a statement that changed nothing.
func changed(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return oneline.Join(errNotTaken, err)
	}
	return nil
}

func granted(res sql.Result, err error) (lease.Acquired, error) {
	if err := changed(res, err); err != nil {
		return lease.Acquired{}, err
	}
	token, err := res.LastInsertId()
	if err != nil {
		return lease.Acquired{}, err
	}
	return (&sqlstore.Answer{State: sqlstore.StateMine, Token: token}).Acquired()
}
