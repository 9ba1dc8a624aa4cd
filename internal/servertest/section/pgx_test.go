package section

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

func TestASectionInATransactionOfPgx(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		pool, err := pgx.Connect(s.Context(), s.Env.Source)
		s.OK(err)
		s.Cleanup(func() { _ = pool.Close(context.Background()) })
		table, c := s.Ledger(), s.Client()
		write := func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE `+table+` SET n = n + 1 WHERE id = 1`)
			return err
		}
		s.OK(postgres.DoTx(s.Context(), c, pool, "k", write, rowlock.Note("pgx")))
		err = postgres.DoTx(s.Context(), c, pool, "k", func(ctx context.Context, tx pgx.Tx) error {
			s.OK(write(ctx, tx))
			return errTest
		})
		s.WantErr(err, errTest)
		wantFree(s, "k")
		if n := ledger(s, table); n != 1 {
			s.Errorf("n is %d, want 1", n)
		}
		s.WantErr(postgres.DoTx(s.Context(), c, nil, "k", write), rowlock.ErrConfig)
	})
}
