package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/lease"
)

// untouched is a lock that must not be asked.
type untouched struct{ *testing.T }

func (n untouched) FenceIn(context.Context, lease.Runner) error  { n.Error("fenced"); return nil }
func (n untouched) UnlockIn(context.Context, lease.Runner) error { n.Error("unlocked"); return nil }

// tx is a transaction of which there may be none.
type tx struct{ pgx.Tx }

func TestATransactionThatIsNilIsRefused(t *testing.T) {
	for name, none := range map[string]pgx.Tx{"nil": nil, "a nil pointer": (*tx)(nil)} {
		for _, err := range []error{
			postgres.Fence(t.Context(), none, untouched{t}), postgres.UnlockTx(t.Context(), none, untouched{t}),
			postgres.SQLTx(t.Context(), none, func(*sql.Tx) error { t.Error("called"); return nil }),
		} {
			if !errors.Is(err, lease.ErrConfig) {
				t.Errorf("%s: %v, want %v", name, err, lease.ErrConfig)
			}
		}
	}
}

func TestNothingThatIsNilIsUsed(t *testing.T) {
	for what, err := range map[string]error{
		"the pool":     func() error { _, err := postgres.OpenPool(nil); return err }(),
		"the function": postgres.SQLTx(t.Context(), tx{}, nil),
	} {
		if !errors.Is(err, lease.ErrConfig) {
			t.Errorf("%s is nil: %v, want %v", what, err, lease.ErrConfig)
		}
	}
}

// sections is a client that commits under a ctx that has ended.
type sections struct{}

func (sections) DoTxIn(
	ctx context.Context, _ []string,
	begin func(context.Context, *sql.TxOptions) (lease.Transaction, error),
	_ func(context.Context) error, _ ...any,
) error {
	tx, err := begin(ctx, &sql.TxOptions{})
	if err != nil {
		return err
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	return tx.Commit(over)
}

// BeginTx begins what every COMMIT succeeds of.
func (n tx) BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error) { return n, nil }
func (tx) Commit(context.Context) error                             { return nil }

// Success after the end of its ctx is how PostgreSQL answers a canceled wait for its standby.
func TestACommitThatMayHaveBeenCutShortIsNotAcknowledged(t *testing.T) {
	f := func(context.Context, pgx.Tx) error { return nil }
	err := postgres.DoTx(t.Context(), sections{}, tx{}, "k", f)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}
