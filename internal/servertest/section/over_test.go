package section

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// sends is a function that ends its transaction by a statement.
func sends(statement string) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement)
		return err
	}
}

// A COMMIT of nothing is answered with success by PostgreSQL, and with an error by SQLite.
func TestATransactionThatAStatementHasEndedIsNotCommitted(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		if s.Is("mariadb", "mysql") {
			s.Skip("found out by the row's mark")
		}
		c := s.Client()
		l := s.Take(c, "kept")
		for _, statement := range []string{`ROLLBACK`, `COMMIT`} {
			err := c.DoTx(s.Context(), "k", sends(statement))
			s.WantErr(err, rowlock.ErrConfig)
			kept := l.DoTx(s.Context(), sends(statement))
			s.WantErr(kept, rowlock.ErrConfig)
			if errors.Is(err, rowlock.ErrUnknown) || errors.Is(kept, rowlock.ErrUnknown) {
				s.Errorf("%s: %v; %v", statement, err, kept)
			}
		}
		s.OK(c.DoTx(s.Context(), "k", sends(`SELECT 1`)))
		s.OK(l.Unlock(s.Context()))
	})
}

// Nothing was sent, so that nothing is unknown.
func TestACommitOfWhatTheFunctionHasEndedIsNotUnknown(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		l := s.Take(s.Client(), "k")
		for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
			err := l.DoTx(s.Context(), func(_ context.Context, tx *sql.Tx) error { return end(tx) })
			if s.WantErr(err, rowlock.ErrConfig); errors.Is(err, rowlock.ErrUnknown) {
				s.Error(err)
			}
		}
		s.OK(l.Unlock(s.Context()))
	})
}

func TestWhatAFunctionLeavesOpenIsNamed(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		err := s.Client().DoTx(s.Context(), "k", func(ctx context.Context, tx *sql.Tx) error {
			rows, err := tx.QueryContext(ctx, `SELECT 1 UNION ALL SELECT 2`)
			if err == nil && rows.Next() {
				return nil
			}
			return errors.Join(errors.New("no row"), err)
		})
		if err == nil || errors.Is(err, rowlock.ErrUnknown) || !strings.Contains(err.Error(), "rows open, close them") {
			s.Error(err)
		}
	})
}

// pgx says of a connection that is closed or busy that nothing was sent on it.
func TestACommitThatPgxHasNotSentIsNotUnknown(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		pool, err := pgxpool.New(s.Context(), s.Env.Source)
		s.OK(err)
		defer pool.Close()
		c := s.Client()
		for name, f := range map[string]func(context.Context, pgx.Tx) error{
			"the end of the connection": func(ctx context.Context, tx pgx.Tx) error {
				_, _ = tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
				return nil
			},
			"open rows": func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Query(ctx, `SELECT generate_series(1, 1000)`)
				return err
			},
			"pgx's Commit": func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) },
		} {
			for _, opts := range [][]rowlock.Option{nil, {rowlock.MinHold(1)}} {
				err := postgres.DoTx(s.Context(), c, pool, "k", f, opts...)
				if err == nil || errors.Is(err, rowlock.ErrUnknown) {
					s.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}
