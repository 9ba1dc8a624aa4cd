// Package fencetest is for docs/monolith.md: how an application tests a fence of its own, on SQLite
// in a temporary folder.
package fencetest

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

func openTest(t *testing.T) (*sql.DB, *rowlock.Client) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "test.db"))
	if err == nil {
		err = schema.Migrate(t.Context(), db, sqlite.New())
	}
	if err != nil {
		t.Fatal(err)
	}
	locks, err := rowlock.Open(db, sqlite.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(); _ = db.Close() })
	return db, locks
}

// deposit is the application's.
func deposit(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `UPDATE account SET balance = balance + 10`)
	return err
}

func TestADepositAfterTheLockWasTakenIsRefused(t *testing.T) {
	db, locks := openTest(t)
	ctx := t.Context()
	if _, err := db.ExecContext(ctx, `CREATE TABLE account AS SELECT 100 AS balance`); err != nil {
		t.Fatal(err)
	}
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		t.Fatal(err)
	}
	_, err = locks.ForceRelease(ctx, "account/7", rowlock.Force{Reason: "as if its lease had expired"})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.DoTx(ctx, deposit); !errors.Is(err, rowlock.ErrFenced) {
		t.Errorf("the deposit returned %v, want ErrFenced", err)
	}
	var balance int
	if err := db.QueryRowContext(ctx, `SELECT balance FROM account`).Scan(&balance); err != nil || balance != 100 {
		t.Errorf("the balance is %d, want 100 (%v)", balance, err)
	}
}
