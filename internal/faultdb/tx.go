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
	if !t.conn.inTx && !t.conn.dead {
		return run() // a statement has ended it, and was the operation
	}
	t.conn.inTx = false
	_, err := perform(ctx, t.conn, t.conn.op(kind, ""), func(context.Context, site) (struct{}, error) {
		return struct{}{}, run()
	})
	return err
}

// ends is the kind of a statement: one that ends a transaction of database/sql's is what its end would be, and not one more.
func (c *conn) ends(query string) Kind {
	kind := Exec
	switch {
	case !c.inTx:
	case query == "COMMIT":
		kind = Commit
	case query == "ROLLBACK":
		kind = Rollback
	}
	if kind != Exec {
		c.inTx = false
	}
	return kind
}
