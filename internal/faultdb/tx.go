package faultdb

import (
	"context"
	"database/sql/driver"
)

// tx is a transaction whose end can fail. Neither method has a context, so it keeps the one it was begun with, as
// drivers do.
type tx struct {
	ctx   context.Context
	conn  *conn
	inner driver.Tx
}

var _ driver.Tx = (*tx)(nil)

// Commit commits.
func (t *tx) Commit() error {
	return t.end(t.ctx, Commit, t.inner.Commit)
}

// Rollback rolls back. database/sql calls it because the context has ended, so it does not listen to that.
func (t *tx) Rollback() error {
	return t.end(context.WithoutCancel(t.ctx), Rollback, t.inner.Rollback)
}

func (t *tx) end(ctx context.Context, kind Kind, run func() error) error {
	_, err := perform(ctx, t.conn, t.conn.op(kind, ""), func(context.Context, site) (struct{}, error) {
		return struct{}{}, run()
	})
	return err
}
