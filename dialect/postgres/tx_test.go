package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/lease"
)

// nobody is a lock that must not be asked.
type nobody struct{ *testing.T }

func (n nobody) FenceIn(context.Context, lease.Runner) error  { n.Error("fenced"); return nil }
func (n nobody) UnlockIn(context.Context, lease.Runner) error { n.Error("unlocked"); return nil }

// tx is a transaction of which there may be none.
type tx struct{ pgx.Tx }

func TestATransactionThatIsNilIsRefused(t *testing.T) {
	for name, none := range map[string]pgx.Tx{"nil": nil, "a nil pointer": (*tx)(nil)} {
		for _, err := range []error{postgres.Fence(t.Context(), none, nobody{t}), postgres.UnlockTx(t.Context(), none, nobody{t})} {
			if !errors.Is(err, lease.ErrConfig) {
				t.Errorf("%s: %v, want %v", name, err, lease.ErrConfig)
			}
		}
	}
}
