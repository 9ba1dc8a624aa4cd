package entgo_test

import (
	"context"
	"testing"

	"entgo.io/ent/dialect"

	"github.com/rowlockdb/rowlock/examples/stacks/entgo"
	"github.com/rowlockdb/rowlock/examples/stacks/internal/bed"
)

var names = map[string]string{"pgx": dialect.Postgres, "mysql": dialect.MySQL, "sqlite": dialect.SQLite}

func TestEnt(t *testing.T) {
	bed.Each(t, bed.All, func(t *testing.T, d bed.Database) {
		bed.Run(t, d, bed.Stack{Pool: d.DB, Dialect: d.Dialect, Begin: func(ctx context.Context) (bed.Tx, error) {
			tx, err := d.DB.BeginTx(ctx, nil)
			if err != nil {
				return bed.Tx{}, err
			}
			accounts := entgo.In(tx, names[d.Driver]).Account
			return bed.OnSQL(tx, tx, func(ctx context.Context, amount int64) error {
				return accounts.UpdateOneID("alice").AddBalance(amount).Exec(ctx)
			}), nil
		}})
	})
}
