package section

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// begins begins transactions on a pool whose connections can be broken, apart from those of the
// client.
func begins(s *servertest.Scene) (rowlock.Beginner[*sql.Tx], *faultdb.Switch, *faultdb.Log) {
	s.Helper()
	faults, log := &faultdb.Switch{}, &faultdb.Log{}
	db, err := faultdb.Open(s.Env.Driver, s.Env.Source, faultdb.Any(log, faults))
	s.OK(err)
	s.Cleanup(func() { _ = db.Close() })
	return func(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, *sql.Tx, error) {
		tx, err := db.BeginTx(ctx, opts)
		return tx, tx, err
	}, faults, log
}

// isCommit is a COMMIT, whichever way it is sent.
func isCommit(op faultdb.Op) bool {
	return op.Kind == faultdb.Commit || op.Executes() && strings.TrimSpace(op.Query) == "COMMIT"
}

// The caller may begin the next transaction on the same connection, as one with a *sql.Conn does: a
// ROLLBACK that came late would end that one, and commit by itself each of its later statements.
func TestNothingIsSentOnTheCallersConnectionAfterDoTxOn(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		table, c, log := s.Ledger(), s.Client(), &faultdb.Log{}
		db, err := faultdb.Open(s.Env.Driver, s.Env.Source, log)
		s.OK(err)
		defer db.Close()
		own, err := db.Conn(s.Context())
		s.OK(err)
		defer own.Close()
		begin := func(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, *sql.Tx, error) {
			tx, err := own.BeginTx(ctx, opts)
			return tx, tx, err
		}
		failed := errors.New("failed")
		for n := range 40 {
			err := rowlock.DoTxOn(s.Context(), c, begin, "k", func(ctx context.Context, tx *sql.Tx) error {
				if n%2 == 1 {
					return failed
				}
				return add(table)(ctx, tx)
			})
			ends := log.Count(func(op faultdb.Op) bool { return op.Kind == faultdb.Commit || op.Kind == faultdb.Rollback })
			if ends != n+1 || err != nil && err != failed {
				s.Errorf("section %d: %v, and %d have let go of their connection", n, err, ends)
			}
		}
		if n := ledger(s, table); n != 20 {
			s.Errorf("n is %d", n)
		}
	})
}

func TestACommitWithoutAnAnswerIsUnknownAndNeverRunAgain(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		table, c := s.Ledger(), s.Client()
		begin, faults, _ := begins(s)
		for i, fault := range []faultdb.Fault{
			faultdb.FailBeforeSend(), faultdb.LoseReply(), faultdb.LoseReply().Reporting(driver.ErrBadConn),
		} {
			before, ran := ledger(s, table), 0
			faults.Set(faultdb.OnFunc(isCommit, faultdb.Nth(1, fault)))
			err := rowlock.DoTxOn(s.Context(), c, begin, "k", func(ctx context.Context, tx *sql.Tx) error {
				ran++
				return add(table)(ctx, tx)
			})
			faults.Set(nil)
			s.WantErr(err, rowlock.ErrUnknown)
			if ran != 1 {
				s.Errorf("fault %d: it ran %d times", i, ran)
			}
			s.Eventually("the key is free", func() bool {
				l, err := c.TryLock(s.Context(), "k")
				if err == nil {
					s.OK(l.Unlock(s.Context()))
				}
				return err == nil
			})
			if n := ledger(s, table); n != before+int64(min(i, 1)) {
				s.Errorf("fault %d: n is %d after %d", i, n, before)
			}
		}
	})
}

// Wherever the connection breaks, nil means that the function's write is there, once.
func TestABrokenConnectionNeverLeavesHalfASection(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		table, c := s.Ledger(), s.Client()
		begin, faults, log := begins(s)
		s.OK(rowlock.DoTxOn(s.Context(), c, begin, "k", add(table)))
		ops := log.Ops()
		for i := range ops {
			for _, fault := range []faultdb.Fault{faultdb.FailBeforeSend(), faultdb.LoseReply()} {
				before := ledger(s, table)
				faults.Set(faultdb.Nth(int64(i+1), fault))
				err := rowlock.DoTxOn(s.Context(), c, begin, "k", add(table))
				faults.Set(nil)
				if n := ledger(s, table); err == nil && n != before+1 || n > before+1 {
					s.Errorf("operation %d (%s): %v, and n is %d after %d", i, ops[i].Kind, err, n, before)
				}
				l := s.Take(c, "k")
				s.OK(l.Unlock(s.Context()))
			}
		}
	})
}

// crossed runs two sections that lock two rows of the ledger in opposite order, so that the
// database has to end one of them. f is called after the second statement of each, with its error.
func crossed(s *servertest.Scene, table string, f func(ctx context.Context, tx *sql.Tx, err error) error) []error {
	s.Helper()
	s.Exec(s.Env.DB, `INSERT INTO `+table+` VALUES (2, 0)`)
	c := s.Client()
	var met sync.WaitGroup
	met.Add(2)
	errs := make([]error, 2)
	var both sync.WaitGroup
	for i, rows := range [][2]string{{"1", "2"}, {"2", "1"}} {
		both.Go(func() {
			var first sync.Once
			errs[i] = c.DoTx(s.Context(), servertest.Numbered(i), func(ctx context.Context, tx *sql.Tx) error {
				set := `UPDATE ` + table + ` SET n = n + 1 WHERE id = `
				if _, err := tx.ExecContext(ctx, set+rows[0]); err != nil {
					return err
				}
				first.Do(func() { met.Done(); met.Wait() })
				_, err := tx.ExecContext(ctx, set+rows[1])
				return f(ctx, tx, err)
			})
		})
	}
	both.Wait()
	return errs
}

func TestADeadlocksVictimRunsAgain(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		table := s.Ledger()
		var ran atomic.Int32
		for _, err := range crossed(s, table, func(_ context.Context, _ *sql.Tx, err error) error {
			ran.Add(1)
			return err
		}) {
			s.OK(err)
		}
		if n := s.Number(`SELECT sum(n) FROM ` + table); n != 4 || ran.Load() < 3 {
			s.Errorf("the sum is %d and the functions ran %d times, want 4 and 3", n, ran.Load())
		}
	})
}

// InnoDB ends the victim's transaction, and commits by itself what the function sends afterwards.
func TestAFunctionThatHidesADeadlockIsFoundOut(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		var hidden atomic.Int32
		failed := 0
		for _, err := range crossed(s, s.Ledger(), func(ctx context.Context, tx *sql.Tx, err error) error {
			if err != nil {
				hidden.Add(1)
				_, _ = tx.ExecContext(ctx, `SELECT 1`)
			}
			return nil
		}) {
			if err == nil {
				continue
			}
			failed++
			if s.Is("mariadb", "mysql") {
				s.WantErr(err, rowlock.ErrUnknown)
			}
		}
		if hidden.Load() != 1 || failed != 1 {
			s.Errorf("%d deadlocks were hidden, and %d sections failed", hidden.Load(), failed)
		}
	})
}

// What a section costs beyond the function's own statements.
func TestWhatASectionSends(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		connections, log := &faultdb.Log{}, &faultdb.Log{}
		db, err := faultdb.Open(s.Env.Driver, s.Env.Source, connections)
		s.OK(err)
		s.Cleanup(func() { _ = db.Close() })
		c := s.ClientOn(db, func(cfg *rowlock.Config) { cfg.Hints = rowlock.HintsOff })
		begin, _, log := begins(s)
		table := s.Ledger()
		for range 2 { // the second has all connections, and knows all statements
			connections.Reset()
			log.Reset()
			s.OK(rowlock.DoTxOn(s.Context(), c, begin, "k", func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, `UPDATE `+table+` SET n = n + 1 WHERE id = 1`)
				return err
			}))
		}
		executes := func(op faultdb.Op) bool { return op.Executes() }
		want := 3 // fence, the function's own, release; begin and commit are no statements
		if s.Is("mariadb", "mysql") {
			want = 4 // and COMMIT
		}
		if n := log.Count(executes); n > want {
			s.Errorf("%d statements in the transaction, want %d: %q", n, want, log.Queries())
		}
		if s.Is("sqlite") {
			return // the lock's transaction is several statements there, and none leaves the process
		}
		if n := connections.Count(executes); n > 1 {
			s.Errorf("%d statements for the lock, want 1: %q", n, connections.Queries())
		}
	})
}
