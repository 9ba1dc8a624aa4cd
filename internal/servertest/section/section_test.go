package section

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

type function = func(ctx context.Context, tx *sql.Tx) error

// add is a function of a section that reads, and writes what it has read and one.
func add(table string) function {
	return func(ctx context.Context, tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT n FROM `+table+` WHERE id = 1`).Scan(&n); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE `+table+` SET n = `+strconv.Itoa(n+1)+` WHERE id = 1`)
		return err
	}
}

func ledger(s *servertest.Scene, table string) int64 {
	return s.Number(`SELECT n FROM ` + table + ` WHERE id = 1`)
}

var errTest = errors.New("of the test")

// wantFree takes key at once, as another process would.
func wantFree(s *servertest.Scene, key string) {
	s.Helper()
	l, err := s.Client().TryLock(s.Context(), key)
	s.OK(err)
	s.OK(l.Unlock(s.Context()))
}

func TestASectionIsCommittedWithItsRelease(t *testing.T) {
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		table, c, other := s.Ledger(), s.Client(m.Set), s.Client(m.Set)
		s.OK(c.DoTx(s.Context(), "k", func(ctx context.Context, tx *sql.Tx) error {
			s.WantHeld(other, "k")
			return add(table)(ctx, tx)
		}))
		wantFree(s, "k")
		if n := ledger(s, table); n != 1 {
			s.Errorf("n is %d, want 1", n)
		}
		if n := c.Stats(); n.Held != 0 || n.Released != 1 || n.Lost != 0 || n.UnlockFailed != 0 {
			s.Errorf("counted %+v, want one lock that was released", n)
		}
	})
}

func TestASectionThatFailsLeavesNothingAndReleases(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		table, c := s.Ledger(), s.Client()
		for name, end := range map[string]func() error{
			"error": func() error { return errTest },
			"panic": func() error { panic(errTest) },
			"exit":  func() error { runtime.Goexit(); return nil },
		} {
			var got error
			var ended sync.WaitGroup
			ended.Go(func() {
				defer func() {
					if p := recover(); p != nil {
						got, _ = p.(error)
					}
				}()
				got = c.DoTx(s.Context(), "k", func(ctx context.Context, tx *sql.Tx) error {
					if err := add(table)(ctx, tx); err != nil {
						return err
					}
					return end()
				})
			})
			ended.Wait()
			if name != "exit" && !errors.Is(got, errTest) {
				s.Errorf("%s: got %v, want what the function failed with", name, got)
			}
			wantFree(s, "k")
			if n := ledger(s, table); n != 0 {
				s.Errorf("%s: n is %d, want 0", name, n)
			}
		}
		if n := c.Stats().Held; n != 0 {
			s.Errorf("%d locks are held", n)
		}
	})
}

func TestSectionsOfOneKeyLoseNoUpdate(t *testing.T) {
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		const callers, each = 4, 10
		table := s.Ledger()
		var all sync.WaitGroup
		for range 2 {
			c := s.Client(m.Set)
			for range callers / 2 {
				all.Go(func() {
					for range each {
						if err := c.DoTx(s.Context(), "k", add(table)); err != nil {
							s.Error(err)
						}
					}
				})
			}
		}
		all.Wait()
		if n := ledger(s, table); n != callers*each {
			s.Errorf("n is %d, want %d", n, callers*each)
		}
	})
}

// What an operator takes before the transaction has fenced the lock is refused, and the function
// does not run.
func TestASectionThatHasLostItsKeyWritesNothing(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		c, db := s.Client(), s.Env.Pool(s)
		begin := func(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, *sql.Tx, error) {
			_, err := s.Client().ForceRelease(ctx, "k", rowlock.Force{Reason: "test"})
			s.OK(err)
			tx, err := db.BeginTx(ctx, opts)
			return tx, tx, err
		}
		err := rowlock.DoTxOn(s.Context(), c, begin, "k", func(context.Context, *sql.Tx) error {
			s.Error("the function ran")
			return nil
		})
		s.WantErr(err, rowlock.ErrFenced)
		s.WantErr(err, rowlock.ErrLost)
	})
}

func TestWhatASectionRefusesIsRefusedBeforeItLocks(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		c := s.Client()
		f := func(context.Context, *sql.Tx) error { s.Error("the function ran"); return nil }
		read := rowlock.TxOptions(sql.TxOptions{ReadOnly: true})
		var missing context.Context
		s.WantErr(c.DoTx(s.Context(), "k", nil), rowlock.ErrConfig)
		s.WantErr(c.DoTx(missing, "k", f), rowlock.ErrConfig)
		s.WantErr(c.DoTx(s.Context(), "", f), rowlock.ErrInvalidKey)
		s.WantErr(c.DoTx(s.Context(), "k", f, read), rowlock.ErrConfig)
		s.WantErr(c.DoTx(s.Context(), "k", f, rowlock.Reentrant()), rowlock.ErrConfig)
		s.WantErr(c.DoAllTx(s.Context(), nil, f), rowlock.ErrConfig)
		s.WantErr(rowlock.DoTxOn(s.Context(), c, nil, "k", f), rowlock.ErrConfig)
		for _, o := range []rowlock.Option{rowlock.TxOptions(sql.TxOptions{}), rowlock.Shared()} {
			_, err := c.TryLock(s.Context(), "k", o)
			s.WantErr(err, rowlock.ErrConfig)
		}
		if n := c.Stats().Acquired; n != 0 {
			s.Errorf("%d locks were taken", n)
		}
	})
}

// The transaction within would wait for the fence of the one around it.
func TestASectionOfAKeyThatIsHeldAboveIsADeadlock(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		c := s.Client(func(c *rowlock.Config) { c.Reentrant = true })
		within := func(ctx context.Context) error {
			return c.DoTx(ctx, "k", func(context.Context, *sql.Tx) error { s.Error("the function ran"); return nil })
		}
		s.WantErr(c.DoTx(s.Context(), "k", func(ctx context.Context, _ *sql.Tx) error { return within(ctx) }),
			rowlock.ErrDeadlock)
		s.WantErr(c.Do(s.Context(), "k", func(ctx context.Context, _ *rowlock.Lock) error { return within(ctx) }),
			rowlock.ErrDeadlock)
		wantFree(s, "k")
	})
}

func TestAClientWithoutAPoolIsToldWhereTransactionsBegin(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		db := s.Env.Pool(s)
		store, err := rowlock.OpenTable(db, s.Env.Dialect, servertest.Config())
		s.OK(err)
		c, err := rowlock.New(store, servertest.Config())
		s.OK(err)
		defer func() { s.OK(c.Close()); s.OK(store.Close()) }()
		table := s.Ledger()
		err = c.DoTx(s.Context(), "k", add(table))
		s.WantErr(err, rowlock.ErrUnsupported)
		if err == nil || !strings.Contains(err.Error(), "DoTxOn") {
			s.Errorf("%v does not name the cure", err)
		}
		begin := func(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, *sql.Tx, error) {
			tx, err := db.BeginTx(ctx, opts)
			return tx, tx, err
		}
		s.OK(rowlock.DoTxOn(s.Context(), c, begin, "k", add(table)))
		if n := ledger(s, table); n != 1 {
			s.Errorf("n is %d, want 1", n)
		}
		wantFree(s, "k")
	})
}

func TestAFunctionThatEndsItsTransactionIsToldSo(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		c := s.Client()
		for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
			ran := 0
			err := c.DoTx(s.Context(), "k", func(_ context.Context, tx *sql.Tx) error {
				ran++
				return end(tx)
			})
			s.WantErr(err, rowlock.ErrConfig)
			if ran != 1 {
				s.Errorf("it ran %d times", ran)
			}
			wantFree(s, "k")
		}
	})
}

func TestSectionsShareAKey(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		a, b := s.Client(), s.Client()
		s.OK(a.DoTx(s.Context(), "k", func(context.Context, *sql.Tx) error {
			s.WantHeld(b, "k")
			return b.DoTx(s.Context(), "k", func(context.Context, *sql.Tx) error { return nil }, rowlock.Shared())
		}, rowlock.Shared()))
		wantFree(s, "k")
	})
}

func TestSectionsOfSeveralKeysFenceAll(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		table, c, other := s.Ledger(), s.Client(), s.Client()
		s.OK(c.DoAllTx(s.Context(), []string{"b", "a", "b"}, func(ctx context.Context, tx *sql.Tx) error {
			s.WantHeld(other, "a")
			s.WantHeld(other, "b")
			return add(table)(ctx, tx)
		}))
		wantFree(s, "a")
		wantFree(s, "b")
	})
}

func TestMinHoldOutlivesTheSection(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		table, c := s.Ledger(), s.Client()
		s.OK(c.DoTx(s.Context(), "k", add(table), rowlock.MinHold(servertest.Patience)))
		s.WantHeld(s.Client(), "k")
		if n := ledger(s, table); n != 1 {
			s.Errorf("n is %d, want 1", n)
		}
	})
}
