package section

import (
	"context"
	"database/sql"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// forgets is a server on which a deadlock ends a transaction, and each later statement is committed
// by itself.
func forgets(t *testing.T, f func(s *servertest.Scene)) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		if !s.Is("mariadb", "mysql") {
			s.Skip("refuses what follows")
		}
		f(s)
	})
}

// hides is a function that returns nil after its transaction was rolled back, as by a deadlock.
func hides(s *servertest.Scene, table string) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		s.OK(add(table)(ctx, tx))
		_, err := tx.ExecContext(ctx, `ROLLBACK`)
		s.OK(err)
		return add(table)(ctx, tx)
	}
}

// onOne begins transactions on one connection, where marks of earlier ones are believed.
func onOne(s *servertest.Scene) rowlock.Beginner[*sql.Tx] {
	s.Helper()
	db := s.Env.Pool(s)
	db.SetMaxOpenConns(1)
	return func(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, *sql.Tx, error) {
		tx, err := db.BeginTx(ctx, opts)
		return tx, tx, err
	}
}

func TestATransactionThatEndsUnnoticedIsFoundOut(t *testing.T) {
	forgets(t, func(s *servertest.Scene) {
		c, table, begin := s.Client(), s.Ledger(), onOne(s)
		for name, opts := range map[string][]rowlock.Option{
			"exclusive": nil,
			"shared":    {rowlock.Shared()},
			"MinHold":   {rowlock.MinHold(1)},
		} {
			for range 2 {
				err := rowlock.DoTxOn(s.Context(), c, begin, []string{"a " + name, "b " + name}, hides(s, table), opts...)
				s.WantErr(err, rowlock.ErrUnknown)
			}
		}
	})
}

// The lock has been fenced before, by hand and on the same connection: that mark is committed, and
// proves nothing.
func TestAMarkOfAFenceByHandProvesNothing(t *testing.T) {
	forgets(t, func(s *servertest.Scene) {
		db, table := s.Env.Pool(s), s.Ledger()
		l := s.Take(s.ClientOn(db), "k")
		number := func(tx *sql.Tx) (n int64) {
			s.OK(tx.QueryRowContext(s.Context(), `SELECT CONNECTION_ID()`).Scan(&n))
			return n
		}
		marked := make(map[int64]bool)
		s.Eventually("a section on a connection that has fenced the lock", func() bool {
			tx := s.Begin(db, nil)
			s.OK(l.Fence(s.Context(), tx))
			marked[number(tx)] = true
			s.OK(tx.Commit())
			was := false
			s.WantErr(l.DoTx(s.Context(), func(ctx context.Context, tx *sql.Tx) error {
				was = marked[number(tx)]
				return hides(s, table)(ctx, tx)
			}), rowlock.ErrUnknown)
			return was
		})
		s.OK(l.Unlock(s.Context()))
	})
}

// The first run has committed the mark of its fence, as DDL does.
func TestAMarkOfAnEarlierRunProvesNothing(t *testing.T) {
	forgets(t, func(s *servertest.Scene) {
		table, ran := s.Ledger(), 0
		err := rowlock.DoTxOn(s.Context(), s.Client(), onOne(s), "k", func(ctx context.Context, tx *sql.Tx) error {
			if ran++; ran == 1 {
				_, err := tx.ExecContext(ctx, `COMMIT`)
				s.OK(err)
				return &mysql.MySQLError{Number: 1213, Message: "of the test"}
			}
			return hides(s, table)(ctx, tx)
		})
		s.WantErr(err, rowlock.ErrUnknown)
		if ran != 2 {
			s.Errorf("it ran %d times, want 2", ran)
		}
	})
}

// What DDL has committed was fenced, and what follows is written while the row names the lock.
func TestDDLInASectionLosesNothing(t *testing.T) {
	forgets(t, func(s *servertest.Scene) {
		table, c := s.Ledger(), s.Client()
		s.OK(rowlock.DoTxOn(s.Context(), c, onOne(s), "k", func(ctx context.Context, tx *sql.Tx) error {
			s.OK(add(table)(ctx, tx))
			_, err := tx.ExecContext(ctx, `CREATE TABLE `+table+`_more (n INT)`)
			s.OK(err)
			return add(table)(ctx, tx)
		}))
		s.Exec(s.Env.DB, `DROP TABLE `+table+`_more`)
		if n := ledger(s, table); n != 2 {
			s.Errorf("n is %d, want 2", n)
		}
		err := rowlock.DoTxOn(s.Context(), c, onOne(s), "k", func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `COMMIT`)
			s.OK(err)
			_, err = s.Client().ForceRelease(ctx, "k", rowlock.Force{Reason: "test"})
			s.OK(err)
			return add(table)(ctx, tx)
		})
		s.WantErr(err, rowlock.ErrUnknown)
	})
}
