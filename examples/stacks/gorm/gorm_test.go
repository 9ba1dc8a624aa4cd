// Package gorm_test has rowlock in transactions of gorm. Inside db.Transaction the *gorm.DB has the
// *sql.Tx in Statement.ConnPool; sqlTx of example_test.go takes it out.
package gorm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	gormtests "gorm.io/gorm/utils/tests"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/examples/stacks/internal/bed"
	"github.com/rowlockdb/rowlock/lease"
)

// Account is a row of the table account.
type Account struct {
	ID      string
	Balance int64
}

// TableName is account.
func (Account) TableName() string { return "account" }

func TestGorm(t *testing.T) {
	for name, prepare := range map[string]bool{"plain": false, "PrepareStmt": true} {
		t.Run(name, func(t *testing.T) {
			bed.Each(t, bed.All, func(t *testing.T, d bed.Database) {
				db := open(t, d, prepare)
				bed.Run(t, d, bed.Stack{Pool: d.DB, Dialect: d.Dialect, Begin: func(ctx context.Context) (bed.Tx, error) {
					return begin(db.WithContext(ctx).Begin())
				}})
			})
		})
	}
}

func begin(tx *gorm.DB) (bed.Tx, error) {
	if tx.Error != nil {
		return bed.Tx{}, tx.Error
	}
	as, err := sqlTx(tx)
	if err != nil {
		return bed.Tx{}, err
	}
	return bed.OnSQL(as, tx.Statement.ConnPool.(rowlock.Tx), func(ctx context.Context, amount int64) error {
		return deposit(ctx, tx, amount)
	}), nil
}

func deposit(ctx context.Context, tx *gorm.DB, amount int64) error {
	return tx.WithContext(ctx).Model(&Account{}).Where("id = ?", "alice").
		Update("balance", gorm.Expr("balance + ?", amount)).Error
}

// open has gorm on a pool that exists. The pure dialector for SQLite is gorm's own for its tests:
// gorm.io/driver/sqlite needs cgo.
func open(t *testing.T, d bed.Database, prepare bool) *gorm.DB {
	t.Helper()
	cfg := &gorm.Config{PrepareStmt: prepare, Logger: logger.Discard}
	var dialector gorm.Dialector
	switch d.Driver {
	case "pgx":
		dialector = postgres.New(postgres.Config{Conn: d.DB})
	case "mysql":
		dialector = mysql.New(mysql.Config{Conn: d.DB})
	default:
		dialector, cfg.ConnPool = gormtests.DummyDialector{}, d.DB
	}
	db, err := gorm.Open(dialector, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestWhatIsNoTransactionOfGormIsRefusedByName(t *testing.T) {
	bed.Each(t, []string{"sqlite"}, func(t *testing.T, d bed.Database) {
		locks, err := rowlock.Open(d.DB, d.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close()
		l, err := locks.TryLock(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Unlock(t.Context())
		plain, prepared := open(t, d, false), open(t, d, true)
		for what, tx := range map[string]gorm.ConnPool{
			"*sql.DB is a pool":              plain.Statement.ConnPool,
			"*gorm.PreparedStmtDB is a pool": prepared.Statement.ConnPool,
		} {
			err := l.Fence(t.Context(), tx.(rowlock.Tx))
			if !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), what) {
				t.Errorf("%T: %v, want %q", tx, err, what)
			}
		}
		if _, err := sqlTx(plain); err == nil {
			t.Error("sqlTx takes a pool")
		}
	})
}

// With PrepareStmt, gorm's transaction drops the error of a statement that it cannot prepare, and
// returns a *sql.Row on which Scan panics.
func TestAnErrorThatGormLosesIsNoPanic(t *testing.T) {
	bed.Each(t, []string{"sqlite"}, func(t *testing.T, d bed.Database) {
		locks, err := rowlock.Open(d.DB, d.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close()
		l, err := locks.TryLock(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Unlock(t.Context())
		tx := open(t, d, true).Begin()
		within, err := sqlTx(tx)
		if err != nil {
			t.Fatal(err)
		}
		if err := within.Rollback(); err != nil { // gorm does not know
			t.Fatal(err)
		}
		const cure = "*gorm.PreparedStmtTX failed to run a statement and lost the reason; pass the *sql.Tx within"
		err = l.Fence(t.Context(), tx.Statement.ConnPool.(rowlock.Tx))
		if !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), cure) {
			t.Errorf("%v, want %q", err, cure)
		}
	})
}
