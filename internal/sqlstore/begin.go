package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Beginner is BeginTx of a connection or of a pool.
type Beginner = func(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)

// mostBegins is how many transactions BeginTx begins: the second says what the first has lacked.
// The session behind a pooler can be another one each time.
const mostBegins = 4

// BeginTx begins a transaction in which statements of the application run too. What opts leaves
// open is the database's default, also in a session that other clients share: see
// Features.PinShared.
func (d *Dialect) BeginTx(ctx context.Context, begin Beginner, opts *sql.TxOptions) (*sql.Tx, error) {
	if d.PinShared == nil {
		return begin(ctx, opts)
	}
	var want sql.TxOptions
	if opts != nil {
		want = *opts
	}
	var begins SharedTx
	for range mostBegins {
		tx, err := begin(ctx, &want)
		if err != nil {
			return nil, err
		}
		ok, err := d.PinShared(ctx, lease.InTx(tx), &want, &begins)
		if ok && err == nil {
			return tx, nil
		}
		_ = tx.Rollback()
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: every session of the pooler begins transactions otherwise than it is asked to",
		lease.ErrBusy)
}

// SharedTx is what PinShared has found in transactions that were begun before: the session's
// defaults are not those of the database, so that a transaction has to say more as its very first.
type SharedTx struct {
	Hurried  bool // a limit on time is too short to ask anything
	ReadOnly bool // it may not write, though the database's default lets it
}

// Begins is what begins a transaction of pool, and sets tx to it.
func (d *Dialect) Begins(pool adapter.DB, tx **sql.Tx) adapter.Begin {
	return func(ctx context.Context, opts *sql.TxOptions) (lease.Transaction, error) {
		pinned, err := pool.Conn(ctx)
		if err != nil {
			return nil, err
		}
		t, err := d.BeginOn(ctx, pinned, opts)
		if err != nil {
			return nil, err
		}
		*tx = t.Tx
		return owned{t, d.InTx(t.Tx)}, nil
	}
}

// BeginsBy is what begins a transaction of the caller's library.
func (d *Dialect) BeginsBy(begin Beginner) adapter.Begin {
	return func(ctx context.Context, opts *sql.TxOptions) (lease.Transaction, error) {
		t, err := d.BeginBy(ctx, begin, opts)
		if err != nil {
			return nil, err
		}
		return owned{t, d.InTx(t.Tx)}, nil
	}
}

// owned is a transaction of DoTx.
type owned struct {
	*Transaction
	lease.Runner
}
