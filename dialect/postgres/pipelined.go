package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rowlockdb/rowlock/lease"
)

// pipelined is a transaction that sends BEGIN together with its first statement, the fence, and
// COMMIT together with its last ones, the releases: one round trip each. An error has the server
// skip what was sent with the statement after it.
type pipelined struct {
	*transaction // begun if it has a tx
	on           batcher
	with         pgx.TxOptions
	last         pgx.Batch
}

type batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// errBegin is why nothing was sent of a transaction, or why its first batch was refused.
var errBegin = errors.New("begin")

// QueryOne begins the transaction, if it is the first.
func (t *pipelined) QueryOne(ctx context.Context, query string, args []any, dest ...any) error {
	if t.tx != nil {
		return t.runner.QueryOne(ctx, query, args, dest...)
	}
	var b pgx.Batch
	b.BeginTx(t.with)
	b.Queue(query, args...)
	sent := t.on.SendBatch(ctx, &b)
	t.tx = sent.Tx()
	_, err := sent.Exec()
	if err != nil {
		err = fmt.Errorf("%w: %w", errBegin, err)
	} else {
		err = asRow(sent.QueryRow().Scan(dest...))
	}
	return cmp.Or(err, sent.Close())
}

// Over is why the function has left nothing to commit, or no way to do it. pgx and the last answer
// of the server say that without a round trip.
func (t *pipelined) Over() error {
	if err := t.tx.SendBatch(context.Background(), new(pgx.Batch)).Close(); err != nil {
		return fmt.Errorf("%w: %w", sql.ErrTxDone, err)
	}
	switch c := t.tx.Conn().PgConn(); {
	case c.IsClosed():
		return errors.New("the connection has ended, and so nothing was committed")
	case c.TxStatus() == idle:
		return errOver
	case c.IsBusy():
		return fmt.Errorf("%w: the function has left rows or a batch open: close them before it returns",
			lease.ErrConfig)
	}
	return nil
}

// Finish has query sent together with COMMIT, which is not run unless query changes a row.
func (t *pipelined) Finish(_ context.Context, query string, args []any) error {
	t.last.Queue(`WITH released AS (`+query+` RETURNING 1)
		SELECT (CASE count(*) WHEN 0 THEN '`+unreleased+`' ELSE '1' END)::int FROM released`, args...)
	return nil
}

// unreleased is what a release that has changed no row cannot read as a number, and so says.
const unreleased = "rowlock: the row no longer names the lock"

// Commit commits.
func (t *pipelined) Commit(ctx context.Context) error {
	if t.last.Len() == 0 {
		return t.transaction.Commit(ctx)
	}
	t.last.Queue("COMMIT") // not "commit", which pgx will prepare anew because of what follows below
	sent := t.tx.SendBatch(ctx, &t.last)
	var tag pgconn.CommandTag
	var err error
	for n := t.last.Len(); n > 0 && err == nil; n-- {
		tag, err = sent.Exec()
	}
	err = cmp.Or(err, sent.Close())
	if err == nil && tag.String() != "COMMIT" {
		err = pgx.ErrTxCommitRollback
	}
	if t.tx.Conn().PgConn().TxStatus() == idle {
		over, cancel := context.WithCancel(ctx)
		cancel()
		_ = t.tx.Commit(over) // sends nothing: it has pgx know that the transaction is over
	}
	return cmp.Or(err, ctx.Err())
}
