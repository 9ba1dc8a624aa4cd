// Package queries is as sqlc generates one.
package queries

import (
	"context"
	"database/sql"
)

type DBTX interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}

func New(db DBTX) *Queries { return &Queries{db: db} }

type Queries struct{ db DBTX }

func (q *Queries) WithTx(tx *sql.Tx) *Queries { return &Queries{db: tx} }

func (q *Queries) Withdraw(ctx context.Context, id int64) error {
	_, err := q.db.ExecContext(ctx, "UPDATE account SET balance = balance - 5 WHERE id = $1", id)
	return err
}

func (q *Queries) Balance(ctx context.Context, id int64) (int64, error) { return 0, nil }
