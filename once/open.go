package once

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/opening"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// open probes the server and the table, and rehearses. A busy database is no refusal, because many
// processes may open it at this moment, nor is a bad connection, of which the pool may have many.
func (o *Once) open(ctx context.Context) (err error) {
	o.d, err = opening.Examine(ctx, o.db, o.d, o.cfg.Logger,
		func(*sqlstore.Dialect, *sql.Conn) error { return nil })
	if err != nil {
		return sqlstore.ExplainPrivilege(ctx, o.db, o.d, err)
	}
	for pauses := retry.Pauses(); ; {
		err = o.rehearse(ctx)
		if !oneline.Is(err, lease.ErrBusy, driver.ErrBadConn) || !retry.Sleep(ctx, pauses.NextBackOff()) {
			return sqlstore.ExplainPrivilege(ctx, o.db, o.d, err)
		}
	}
}

var errRehearsed = errors.New("rehearsed")

// rehearse does a key of its own and rolls back, and removes no rows.
func (o *Once) rehearse(ctx context.Context) error {
	r := Request{Key: lease.Reserved + "once/" + lease.NewOwner().String(), Fingerprint: Fingerprint()}
	a := attempt{o: o, req: r, row: r.row(o.cfg.Keep), wait: o.cfg.Wait, f: o.rehearsal(r)}
	if _, err := a.run(ctx); !errors.Is(err, errRehearsed) {
		return fmt.Errorf("rehearsing every statement on a key of its own: %w", err)
	}
	_, err := o.sweep(ctx, 0)
	return err
}

// rehearsal checks that what was written is there, because a trigger or a row policy can make a
// write vanish without an error.
func (o *Once) rehearsal(r Request) Func {
	return func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		c, run, value := r.row(o.cfg.Keep), lease.InTx(tx), []byte("result")
		if err := o.store(ctx, tx, c, value); err != nil {
			return nil, o.explain("rehearse", "", err)
		}
		row, err := sqlstore.LookOnce(ctx, run, o.d, c)
		if err == nil && (row.State != sqlstore.OnceDone || !bytes.Equal(row.Result, value) ||
			!bytes.Equal(row.Fingerprint, r.Fingerprint)) {
			err = fmt.Errorf("%w: a row that was made a moment ago is missing: is there a trigger or a row policy "+
				"on the table?", lease.ErrCorrupt)
		}
		taken := false
		if err == nil {
			taken, err = takeRow(ctx, run, o.d, c)
		}
		if taken {
			err = fmt.Errorf("%w: a row that was made a moment ago has expired: does the server's clock run?",
				lease.ErrCorrupt)
		}
		if err != nil {
			return nil, o.explain("rehearse", "", err)
		}
		return nil, errRehearsed
	}
}
