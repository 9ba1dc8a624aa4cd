package once

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// takeRow takes an expired row over. It is not taken if another transaction has taken it, or if it
// was removed.
func takeRow(ctx context.Context, tx lease.Runner, d sqlstore.Texts, c sqlstore.OnceClaim) (bool, error) {
	return found(tx.Exec(ctx, d.Text("once-take"), c.ID(c.Fingerprint, conn.Micros(c.Keep))))
}

// storeRow writes the result into the row that this transaction has made. It is not stored if the
// row has vanished, because the server has rolled the transaction back unnoticed, as InnoDB does
// after a deadlock.
func storeRow(
	ctx context.Context, tx lease.Runner, d sqlstore.Texts, c sqlstore.OnceClaim, result []byte,
) (stored bool, err error) {
	return found(tx.Exec(ctx, d.Text("once-store"), c.ID(result)))
}

// found reports whether a statement has found its row.
func found(n int64, err error) (bool, error) { return n > 0, err }

// countRows returns how many rows a request's tenant has, up to most.
func countRows(
	ctx context.Context, run lease.Runner, d sqlstore.Texts, c sqlstore.OnceClaim, most int,
) (n int, err error) {
	err = run.QueryOne(ctx, d.Text("once-count"), []any{c.Tenant, most}, &n)
	return n, err
}

// confirmRow writes to a row that was read, in tx. Once tx is committed and acknowledged, so is
// the transaction that made the row.
func confirmRow(ctx context.Context, tx lease.Runner, d sqlstore.Texts, c sqlstore.OnceClaim) (bool, error) {
	return found(tx.Exec(ctx, d.Text("once-confirm"), c.ID()))
}
