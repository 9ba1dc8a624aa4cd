package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/optimistic"
)

// way is one way to sell: buy takes one item from a shelf for a buyer.
type way struct {
	name    string
	shelves int // over which the items are spread
	buy     func(ctx context.Context, shelf int64, b buyer) error
	unsafe  bool // it is here to show what goes wrong
}

type buyer struct {
	number int64
	way    string
}

var errSoldOut = errors.New("sold out")

func (s *shop) ways() []way {
	return []way{
		{name: "no lock at all", shelves: 1, buy: s.withNothing, unsafe: true},
		{name: "a lock", shelves: 1, buy: s.withLock},
		{name: "a lock per shelf", shelves: s.stripes, buy: s.withLock},
		{name: "FOR UPDATE", shelves: 1, buy: s.withRowLock},
		{name: "FOR UPDATE, shelves", shelves: s.stripes, buy: s.withRowLock},
		{name: "optimistic", shelves: 1, buy: s.withVersion},
		{name: "optimistic, shelves", shelves: s.stripes, buy: s.withVersion},
	}
}

// withNothing reads, thinks and writes. So do all others at the same moment. Not even on a machine
// that runs one after the other is it safe: the first thinks until a second has read.
func (s *shop) withNothing(ctx context.Context, shelf int64, b buyer) error {
	left, err := s.left(ctx, s.db, shelf)
	if err != nil {
		return err
	}
	switch s.thought.Add(1) {
	case 1:
		if s.buyers > 1 {
			select {
			case <-s.second:
			case <-ctx.Done():
			}
		}
	case 2:
		close(s.second)
	}
	return s.inTx(ctx, func(tx *sqlx.Tx) error { return s.take(ctx, tx, shelf, left, b) })
}

// withLock makes all other buyers of the shelf wait until its transaction has ended. Nothing of it
// is written if the lock is lost.
func (s *shop) withLock(ctx context.Context, shelf int64, b buyer) error {
	key := fmt.Sprintf("shelf/%d", shelf)
	sell := func(ctx context.Context, tx *sqlx.Tx) error {
		left, err := s.left(ctx, tx, shelf)
		if err != nil {
			return err
		}
		return s.take(ctx, tx, shelf, left, b)
	}
	return rowlock.DoTxOn(ctx, s.locks, s.begin, key, sell)
}

// begin begins sqlx's own transaction.
func (s *shop) begin(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, *sql.Tx, error) {
	tx, err := s.db.BeginTxx(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	return tx, tx.Tx, nil
}

// withRowLock locks the row itself, for as long as the transaction lasts.
func (s *shop) withRowLock(ctx context.Context, shelf int64, b buyer) error {
	return s.inTx(ctx, func(tx *sqlx.Tx) error {
		if err := s.rows.LockRows(ctx, tx, forupdate.Rows{Table: s.db.Table("shelves"), Key: "id"}, shelf); err != nil {
			return err
		}
		left, err := s.left(ctx, tx, shelf)
		if err != nil {
			return err
		}
		return s.take(ctx, tx, shelf, left, b)
	})
}

// withVersion locks nothing. If another buyer was faster, it starts again.
func (s *shop) withVersion(ctx context.Context, id int64, b buyer) error {
	return optimistic.Retry(ctx, func(ctx context.Context) error {
		row, err := s.table.Get(ctx, s.db, id)
		if err != nil {
			return err
		}
		if row.Items < 1 {
			return errSoldOut
		}
		row.Items--
		return s.inTx(ctx, func(tx *sqlx.Tx) error {
			if err := s.table.Update(ctx, tx, &row); err != nil {
				return err
			}
			return s.note(ctx, tx, id, b)
		})
	}, optimistic.Tries(1000))
}

func (s *shop) left(ctx context.Context, q sqlx.QueryerContext, shelf int64) (left int64, err error) {
	err = sqlx.GetContext(ctx, q, &left, s.sql(`SELECT items FROM {shelves} WHERE id = ?`), shelf)
	return left, err
}

// take writes what is left, and who has bought.
func (s *shop) take(ctx context.Context, tx *sqlx.Tx, shelf, left int64, b buyer) error {
	if left < 1 {
		return errSoldOut
	}
	if _, err := tx.ExecContext(ctx, s.sql(`UPDATE {shelves} SET items = ? WHERE id = ?`), left-1, shelf); err != nil {
		return err
	}
	return s.note(ctx, tx, shelf, b)
}

func (s *shop) note(ctx context.Context, tx *sqlx.Tx, shelf int64, b buyer) error {
	_, err := tx.ExecContext(ctx, s.sql(`INSERT INTO {sold} (way, buyer, shelf) VALUES (?, ?, ?)`), b.way, b.number, shelf)
	return err
}

func (s *shop) inTx(ctx context.Context, f func(tx *sqlx.Tx) error) error {
	var tx *sqlx.Tx
	err := s.patiently(ctx, func() (err error) {
		tx, err = s.db.BeginTxx(ctx, nil)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}
