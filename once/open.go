package once

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
)

// open probes the server and the table, and rehearses. A busy database is no refusal, because many
// processes may open it at this moment.
func (o *Once) open(ctx context.Context) error {
	located, err := o.d.Located(ctx, o.db)
	if err != nil {
		return o.refusal(err)
	}
	o.d = located
	facts, err := o.probe(ctx)
	for pauses := retry.Pauses(); err == nil; {
		err = o.rehearse(ctx)
		if !errors.Is(err, lease.ErrBusy) {
			break
		}
		if retry.Sleep(ctx, pauses.NextBackOff()) {
			err = nil
		}
	}
	if err = sqlstore.ExplainPrivilege(ctx, o.db, o.d, err); err != nil {
		return err
	}
	for _, w := range facts.Warnings {
		o.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "rowlock: "+w, slog.String("server", facts.Server))
	}
	tell.Of(o.cfg.Logger).Flush(time.Second)
	return nil
}

func (o *Once) probe(ctx context.Context) (facts sqlstore.Facts, err error) {
	pinned, err := o.db.Conn(ctx)
	if err != nil {
		return facts, o.explain("connect", "", conn.NotSent{Err: err})
	}
	defer pinned.Close()
	err = o.d.Unshared(ctx, pinned, func() (err error) {
		facts, err = o.d.Probe(ctx, pinned)
		return err
	})
	if err == nil {
		err = sqlstore.ProbeOther(ctx, o.db, o.d)
	}
	return facts, o.refusal(err)
}

// refusal leaves rowlock's own errors as they are.
func (o *Once) refusal(err error) error {
	if err == nil || sqlstore.IsRefusal(err) {
		return err
	}
	return o.explain("probe", "", err)
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
