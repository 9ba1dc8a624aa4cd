package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// Transactions begins the transactions that rowlock runs a caller's function in.
type Transactions struct {
	Pool    Pool     // that Open got; nil after New
	Dialect *Dialect // of the tables; nil for another store
}

// Usable reports whether there is a pool.
func (s *Transactions) Usable() error {
	if s.Pool != nil {
		return nil
	}
	return fmt.Errorf("%w: DoTx needs the pool that Open gets, and this client was made by New: "+
		"say where transactions begin (rowlock.DoTxOn), or use Do and Fence", lease.ErrUnsupported)
}

// Begins is what begins a transaction of the pool, and sets tx to it.
func (s *Transactions) Begins(
	tx **sql.Tx,
) func(context.Context, *sql.TxOptions) (lease.Transaction, error) {
	return func(ctx context.Context, opts *sql.TxOptions) (lease.Transaction, error) {
		pinned, err := s.Pool.Conn(ctx)
		if err != nil {
			return nil, err
		}
		t, err := s.Dialect.BeginOn(ctx, pinned, opts)
		if err != nil {
			return nil, err
		}
		*tx = t.Tx
		return owned{t, s.Dialect.InTx(t.Tx)}, nil
	}
}

// BeginsBy is what begins a transaction of the caller's library.
func (s *Transactions) BeginsBy(begin Beginner) func(context.Context, *sql.TxOptions) (lease.Transaction, error) {
	return func(ctx context.Context, opts *sql.TxOptions) (lease.Transaction, error) {
		t, err := s.Dialect.BeginBy(ctx, begin, opts)
		if err != nil {
			return nil, err
		}
		return owned{t, s.Dialect.InTx(t.Tx)}, nil
	}
}

// owned is a transaction of DoTx.
type owned struct {
	*Transaction
	lease.Runner
}

// KeysOf is one key or several.
func KeysOf[K string | []string](keys K) []string {
	if key, one := any(keys).(string); one {
		return []string{key}
	}
	return any(keys).([]string)
}
