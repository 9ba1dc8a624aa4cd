// Package bun_test has rowlock in transactions of uptrace/bun. A bun.Tx cannot be passed,
// because it rewrites the placeholders of a statement. Its field Tx is the *sql.Tx, and can.
package bun_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/schema"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/examples/stacks/internal/bed"
	"github.com/rowlockdb/rowlock/lease"
)

// Account is a row of the table account.
type Account struct {
	bun.BaseModel `bun:"table:account"`

	ID      string `bun:",pk"`
	Balance int64
}

var dialects = map[string]func() schema.Dialect{
	"pgx":    func() schema.Dialect { return pgdialect.New() },
	"mysql":  func() schema.Dialect { return mysqldialect.New() },
	"sqlite": func() schema.Dialect { return sqlitedialect.New() },
}

func TestBun(t *testing.T) {
	bed.Each(t, bed.All, func(t *testing.T, d bed.Database) {
		db := bun.NewDB(d.DB, dialects[d.Driver]())
		bed.Run(t, d, bed.Stack{Pool: db.DB, Dialect: d.Dialect, Begin: func(ctx context.Context) (bed.Tx, error) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return bed.Tx{}, err
			}
			return bed.OnSQL(tx.Tx, tx.Tx, func(ctx context.Context, amount int64) error {
				return deposit(ctx, tx, amount)
			}), nil
		}})
	})
}

func deposit(ctx context.Context, tx bun.IDB, amount int64) error {
	_, err := tx.NewUpdate().Model((*Account)(nil)).Set("balance = balance + ?", amount).
		Where("id = ?", "alice").Exec(ctx)
	return err
}

func TestWhatBunRewritesIsRefusedByName(t *testing.T) {
	bed.Each(t, bed.All, func(t *testing.T, d bed.Database) {
		db := bun.NewDB(d.DB, dialects[d.Driver]())
		locks, err := rowlock.Open(db.DB, d.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close()
		l, err := locks.TryLock(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Unlock(t.Context())
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		for cure, tx := range map[string]rowlock.Tx{
			"bun.Tx rewrites":           tx,
			"pass its field Tx":         &tx,
			"pass its field Conn":       bun.Conn{},
			"*bun.DB is a pool":         db,
			"begin one on it (BeginTx)": db,
		} {
			for what, err := range map[string]error{
				"Fence": l.Fence(t.Context(), tx), "UnlockTx": l.UnlockTx(t.Context(), tx),
			} {
				if !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), cure) {
					t.Errorf("%s in a %T: %v, want %q", what, tx, err, cure)
				}
			}
		}
	})
}
