package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/striped"
)

// ttl is how long after a crash another worker takes a shard over.
const ttl = 2 * time.Second

// worker is one process.
type worker struct {
	*tables
	batch  int64
	locks  *rowlock.Client
	shards *striped.Stripes
}

// work takes shards until all rows are done. It may be started, and killed, as often as you like.
func work(ctx context.Context, cfg settings) (err error) {
	db, err := source.Open(ctx, cfg.db, dialect.Prefix(cfg.prefix))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	w := &worker{tables: &tables{db, cfg.prefix}, batch: cfg.batch}
	if w.locks, err = rowlock.Open(db, db.Dialect, &rowlock.Config{TTL: ttl}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.locks.Close()) }()
	if w.shards, err = striped.New(w.locks, "backfill", cfg.shards); err != nil {
		return err
	}
	for {
		open, err := w.unfinished(ctx)
		if err != nil || len(open) == 0 {
			return err
		}
		if err := w.takeOne(ctx, open); err != nil {
			return err
		}
	}
}

// takeOne finishes one of the shards, or finds that another worker has just done so. It waits if
// all of them are held: a worker may die, and then its shard is free when its lease has ended.
func (w *worker) takeOne(ctx context.Context, open []int) error {
	keys := make([]string, len(open))
	for i, shard := range open {
		keys[i] = w.shards.Key(shard)
	}
	l, err := w.locks.LockAny(ctx, keys)
	if err != nil {
		return err
	}
	shard, _ := w.shards.Index(l.Key())
	for done := false; err == nil && !done; {
		done, err = w.next(ctx, l, shard)
	}
	if unlock := l.Unlock(ctx); err == nil && !errors.Is(unlock, rowlock.ErrUnknown) {
		return unlock
	}
	if errors.Is(err, rowlock.ErrFenced) || errors.Is(err, rowlock.ErrUnknown) {
		return nil // lost, or a COMMIT without an answer: the position says what was done
	}
	return err
}

// next does the next batch of a shard: its rows, and the position behind them, or neither. The
// position is read in the transaction, because the shard's last holder may have moved it a moment
// before it died.
func (w *worker) next(ctx context.Context, l *rowlock.Lock, shard int) (done bool, err error) {
	err = l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var from, last int64
		err := tx.QueryRowContext(ctx, w.sql(`SELECT next, last FROM {shards} WHERE shard = ?`), shard).Scan(&from, &last)
		if done = from > last; done || err != nil {
			return err
		}
		to := min(from+w.batch-1, last)
		_, err = tx.ExecContext(ctx, w.sql(`UPDATE {products} SET price = price * 100 WHERE id BETWEEN ? AND ?`), from, to)
		if err == nil {
			_, err = tx.ExecContext(ctx, w.sql(`UPDATE {shards} SET next = ? WHERE shard = ?`), to+1, shard)
		}
		return err
	})
	return done, err
}

func (w *worker) unfinished(ctx context.Context) (shards []int, err error) {
	err = w.SelectContext(ctx, &shards, w.sql(`SELECT shard FROM {shards} WHERE next <= last ORDER BY shard`))
	return shards, err
}
