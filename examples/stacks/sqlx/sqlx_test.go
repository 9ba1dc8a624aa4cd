// Package sqlx_test has rowlock in transactions of jmoiron/sqlx. A *sqlx.Tx is a *sql.Tx with more
// methods: it can be passed as it is. once.In takes its field Tx.
package sqlx_test

import (
	"context"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/rowlockdb/rowlock/examples/stacks/internal/bed"
)

func TestSqlx(t *testing.T) {
	bed.Each(t, bed.All, func(t *testing.T, d bed.Database) {
		db := sqlx.NewDb(d.DB, d.Driver)
		bed.Run(t, d, bed.Stack{Pool: db.DB, Dialect: d.Dialect, Begin: func(ctx context.Context) (bed.Tx, error) {
			tx, err := db.BeginTxx(ctx, nil)
			if err != nil {
				return bed.Tx{}, err
			}
			return bed.OnSQL(tx.Tx, tx, func(ctx context.Context, amount int64) error {
				_, err := tx.NamedExecContext(ctx,
					`UPDATE account SET balance = balance + :amount WHERE id = :id`,
					map[string]any{"amount": amount, "id": "alice"})
				return err
			}), nil
		}})
	})
}
