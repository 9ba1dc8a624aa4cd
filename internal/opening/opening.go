// Package opening is how what is built beside the locks is opened, on tables of its own or with
// options of its own.
package opening

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
)

// Apply applies options to what they change, for caller. One that is nil is lease.ErrConfig.
func Apply[S any, O ~func(*S) error](caller string, to *S, options []O) error {
	for i, o := range options {
		if o == nil {
			return fmt.Errorf("%w: %s: option %d is nil; leave it out", lease.ErrConfig, caller, i+1)
		}
		if err := o(to); err != nil {
			return err
		}
	}
	return nil
}

// Examine returns d with the schema of its tables, if it is found, after a look at the server and
// the tables, and what also reads there. It logs what the facts warn of.
func Examine(
	ctx context.Context, db adapter.Pool, d *sqlstore.Dialect, log *slog.Logger,
	also func(*sqlstore.Dialect, *sql.Conn) error,
) (*sqlstore.Dialect, error) {
	located, err := d.Located(ctx, db)
	if err != nil {
		return d, refusal(d, "probe", err)
	}
	pinned, err := db.Conn(ctx)
	if err != nil {
		return located, refusal(d, "connect", err)
	}
	defer pinned.Close()
	var facts sqlstore.Facts
	err = located.Unshared(ctx, pinned, func() (err error) {
		if facts, err = located.Probe(ctx, pinned); err == nil {
			err = sqlstore.ProbeOther(ctx, db, located)
		}
		if err == nil {
			err = also(located, pinned)
		}
		return err
	})
	if err != nil {
		return located, refusal(located, "probe", err)
	}
	tell.Warn(ctx, log, facts.Server, facts.Warnings)
	return located, nil
}

// refusal leaves rowlock's own errors as they are. What is sent before only reads.
func refusal(d *sqlstore.Dialect, verb string, err error) error {
	if sqlstore.IsRefusal(err) {
		return err
	}
	err = conn.NotSent{Err: err}
	return sqlstore.Judge(d, err).Explain(verb, err)
}
