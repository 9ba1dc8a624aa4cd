package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
)

// lost is a transaction that returns what gorm's does for a statement that it cannot prepare.
type lost struct{ lease.Tx }

func (lost) QueryRowContext(context.Context, string, ...any) *sql.Row { return &sql.Row{} }
func (lost) Rollback() error                                          { return nil }

// logged is a pool or a transaction in a wrapper that hides which of the two it is.
type logged struct{ lease.Tx }

func TestARowThatHasLostItsErrorIsNoPanic(t *testing.T) {
	var one int
	err := lease.InTx(lost{}).QueryOne(t.Context(), `SELECT 1`, nil, &one)
	if !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), "lease_test.lost") {
		t.Errorf("%v, want %v that names the type", err, lease.ErrConfig)
	}
}

// Other libraries' types are tested in examples/stacks, because this module does not have them.
func TestWhatIsNoTransactionIsRefused(t *testing.T) {
	for _, tx := range []lease.Tx{nil, (*sql.Tx)(nil), (*sql.Conn)(nil), new(sql.DB), logged{new(sql.DB)}, logged{new(sql.Tx)}} {
		if err := lease.CheckTx(tx); !errors.Is(err, lease.ErrConfig) {
			t.Errorf("%T: %v, want %v", tx, err, lease.ErrConfig)
		}
	}
	for _, tx := range []lease.Tx{new(sql.Tx), new(sql.Conn), lost{}} {
		if err := lease.CheckTx(tx); err != nil {
			t.Errorf("%T: %v", tx, err)
		}
	}
}
