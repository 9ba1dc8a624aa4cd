package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// ErrStrayed says that a connection no longer tells which database its DSN names.
var ErrStrayed = errors.New("the application has changed the database of this session")

// Located returns the same dialect with the schema of its tables, so that every statement names it.
// Unless the user has named one, the pool's DSN, user and database decide. What an application has
// sent on a connection of the pool (SET search_path, USE) never does: another connection of the
// same pool would otherwise lead to other tables, where the same keys are free.
func (d *Dialect) Located(ctx context.Context, pool adapter.Pool) (*Dialect, error) {
	if d.settings.Schema != "" {
		return d, nil
	}
	schema, err := d.find(ctx, pool, d.settings.Prefix+"rowlock_meta")
	if err != nil {
		return nil, err
	}
	return d.in(schema)
}

// find returns the schema in which a new connection of the pool finds a table.
func (d *Dialect) find(ctx context.Context, pool adapter.Pool, table string) (string, error) {
	schema, err := d.locate(ctx, pool, table)
	astray := func() bool { return errors.Is(err, ErrStrayed) || errors.Is(err, driver.ErrBadConn) }
	if astray() {
		for tries := strays(pool); astray() && tries > 0; tries-- {
			schema, err = d.locate(ctx, pool, table)
		}
	}
	if errors.Is(err, ErrStrayed) {
		return "", fmt.Errorf("%w: every connection of the pool has been sent a USE, so that none "+
			"tells which database has the tables: name it (dialect.Schema)", lease.ErrConfig)
	}
	return schema, err
}

// strays is how many connections of the pool may say nothing before one does: all idle ones, and
// some that are returned meanwhile.
func strays(pool adapter.Pool) int {
	const returned, unknown = 8, 64
	if sized, ok := pool.(interface{ Stats() sql.DBStats }); ok {
		return sized.Stats().OpenConnections + returned
	}
	return unknown
}

// locate asks one connection, and discards it if it does not know. A server that does not
// understand the question may be another product, which Server says better.
func (d *Dialect) locate(ctx context.Context, pool adapter.Pool, table string) (schema string, err error) {
	pinned, err := pool.Conn(ctx)
	if err != nil {
		return "", conn.NotSent{Err: err}
	}
	defer pinned.Close()
	ask := func() { schema, err = d.Locate(ctx, pinned, table) }
	ask()
	if first := err; d.Pin != nil && err != nil && !errors.Is(err, ErrStrayed) && !IsRefusal(err) {
		_ = d.Abandon(ctx, pinned) // it may be a transaction that has failed, or the session's settings
		defer d.pinned(ctx, pinned)()
		if ask(); errors.Is(err, sql.ErrConnDone) {
			err = first // has ended the session
		}
	}
	switch {
	case errors.Is(err, ErrStrayed):
		_ = pinned.Raw(func(any) error { return driver.ErrBadConn })
	case err != nil && !IsRefusal(err):
		if _, refusal := d.Server(ctx, pinned); IsRefusal(refusal) {
			err = refusal
		}
	}
	return schema, err
}

// in returns the dialect for a schema that was found. A name that could end its quotes, or a string
// that has it, is refused: no statement escapes names.
func (d *Dialect) in(schema string) (*Dialect, error) {
	if strings.ContainsAny(schema, "\"'`\\@") || strings.ContainsFunc(schema, unicode.IsControl) {
		return nil, fmt.Errorf("%w: the tables cannot stand in the schema or database %q, because its name "+
			"has a quote, a backslash, an @ or a control character: give them another (dialect.Schema)",
			lease.ErrConfig, schema)
	}
	s := d.settings
	s.Schema, s.Found = schema, true
	return d.again(s), nil
}
