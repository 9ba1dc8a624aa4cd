package sqlstore

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock/lease"
)

// InTx is lease.InTx for statements of d, which is nil for a store that has none. Types of other
// libraries get parameters: they may keep a prepared statement for each text.
func (d *Dialect) InTx(tx lease.Tx) lease.Runner {
	run := lease.InTx(tx)
	if _, own := tx.(*sql.Tx); !own || d == nil || d.Spell == nil {
		return run
	}
	return spelled{run, d.Spell}
}

// spelled has no parameters in what it sends.
type spelled struct {
	tx    lease.Runner
	spell func(query string, args []any) string
}

func (s spelled) QueryOne(ctx context.Context, query string, args []any, dest ...any) error {
	return s.tx.QueryOne(ctx, s.spell(query, args), nil, dest...)
}

func (s spelled) Exec(ctx context.Context, query string, args []any) (int64, error) {
	return s.tx.Exec(ctx, s.spell(query, args), nil)
}
