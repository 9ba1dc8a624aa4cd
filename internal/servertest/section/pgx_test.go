package section

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// link dials connections, counts their round trips, and breaks one of them.
type link struct {
	trips  atomic.Int64
	breaks atomic.Int64 // the nth write from now on; 0: none
	after  atomic.Bool  // the server has done what was sent
}

func (l *link) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &linked{Conn: c, link: l}, nil
}

type linked struct {
	net.Conn
	link *link
	sent atomic.Bool
}

func (c *linked) Write(b []byte) (int, error) {
	c.sent.Store(true)
	if c.link.breaks.Load() == 0 || c.link.breaks.Add(-1) != 0 {
		return c.Conn.Write(b)
	}
	if c.link.after.Load() {
		if _, err := c.Conn.Write(b); err == nil {
			_, _ = c.Conn.Read(make([]byte, 1))
		}
	}
	_ = c.Conn.Close()
	return 0, io.ErrClosedPipe
}

func (c *linked) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.sent.CompareAndSwap(true, false) {
		c.link.trips.Add(1)
	}
	return n, err
}

// pgxPool is a pool of the application's, of one connection, apart from those of rowlock.
func pgxPool(s *servertest.Scene, l *link) *pgxpool.Pool {
	s.Helper()
	cfg, err := pgxpool.ParseConfig(s.Env.Source)
	s.OK(err)
	cfg.ConnConfig.DialFunc, cfg.MaxConns = l.dial, 1
	pool, err := pgxpool.NewWithConfig(s.Context(), cfg)
	s.OK(err)
	s.Cleanup(pool.Close)
	return pool
}

// addOne is a function of a section that writes once.
func addOne(table string) func(context.Context, pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE `+table+` SET n = n + 1 WHERE id = 1`)
		return err
	}
}

// own begins transactions in a way of its own.
type own struct {
	*pgxpool.Pool
	begun int
}

func (o *own) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	o.begun++
	return o.Pool.BeginTx(ctx, opts)
}

func TestASectionInATransactionOfPgx(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		conn, err := pgx.Connect(s.Context(), s.Env.Source)
		s.OK(err)
		s.Cleanup(func() { _ = conn.Close(context.Background()) })
		pool := pgxPool(s, &link{})
		table, c, wrapped := s.Ledger(), s.Client(), &own{Pool: pool}
		for n, on := range []postgres.Beginner{conn, pool, wrapped} {
			s.OK(postgres.DoTx(s.Context(), c, on, "k", addOne(table), rowlock.Note("pgx")))
			s.OK(postgres.DoTx(s.Context(), c, on, []string{"a", "k", "z"}, addOne(table)))
			s.OK(postgres.DoTx(s.Context(), c, on, "k", addOne(table), rowlock.Shared()))
			var left pgx.Tx
			err = postgres.DoTx(s.Context(), c, on, "k", func(ctx context.Context, tx pgx.Tx) error {
				left = tx
				s.OK(addOne(table)(ctx, tx))
				return errTest
			})
			s.WantErr(err, errTest)
			_, err = left.Exec(s.Context(), `SELECT 1`)
			s.WantErr(err, pgx.ErrTxClosed)
			s.OK(postgres.DoTx(s.Context(), c, on, "k", func(_ context.Context, tx pgx.Tx) error { left = tx; return nil }))
			_, err = left.Exec(s.Context(), `SELECT 1`)
			s.WantErr(err, pgx.ErrTxClosed)
			for _, key := range []string{"a", "k", "z"} {
				wantFree(s, key)
			}
			if got, want := ledger(s, table), int64(3*(n+1)); got != want {
				s.Errorf("%T: n is %d, want %d", on, got, want)
			}
			s.OK(postgres.DoTx(s.Context(), c, on, "held", addOne(table), rowlock.MinHold(servertest.Patience)))
			s.WantHeld(s.Client(), "held")
			_, err = c.ForceRelease(s.Context(), "held", rowlock.Force{Reason: "test"})
			s.OK(err)
			s.Exec(s.Env.DB, `UPDATE `+table+` SET n = n - 1`)
		}
		if wrapped.begun != 6 {
			s.Errorf("the wrapper has begun %d transactions, want 6", wrapped.begun)
		}
		if n := pool.Stat(); n.AcquiredConns() != 0 || n.NewConnsCount() != 1 {
			s.Errorf("%d connections are in use, of %d", n.AcquiredConns(), n.NewConnsCount())
		}
		s.WantErr(postgres.DoTx(s.Context(), c, nil, "k", addOne(table)), rowlock.ErrConfig)
	})
}

// As many as a transaction of BEGIN, SELECT FOR UPDATE, UPDATE and COMMIT has. That no other process
// waits is asked once in a moment, which is long here.
func TestASectionOfPgxIsFourRoundTrips(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		table := s.Ledger()
		for _, hints := range []rowlock.Hints{rowlock.HintsOn, rowlock.HintsOff} {
			var wire link
			cfg, err := pgx.ParseConfig(s.Env.Source)
			s.OK(err)
			cfg.DialFunc = wire.dial
			connections := stdlib.OpenDB(*cfg)
			s.Cleanup(func() { _ = connections.Close() })
			pool := pgxPool(s, &wire)
			c := s.ClientOn(connections, func(cfg *rowlock.Config) {
				cfg.Hints, cfg.PollMin, cfg.PollMax = hints, servertest.Patience, servertest.Patience
			})
			trips := int64(0)
			for range 5 { // the last has all connections, and knows all statements
				before := wire.trips.Load()
				s.OK(postgres.DoTx(s.Context(), c, pool, "k", addOne(table)))
				trips = wire.trips.Load() - before
			}
			if trips != 4 {
				s.Errorf("hints %v: %d round trips, want 4", hints, trips)
			}
		}
	})
}

// A reader's section fences once, too: what leaves the readers is a statement of its own.
func TestATransactionOfAReaderOfPgxIsFourRoundTrips(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		var wire link
		pool, table, c := pgxPool(s, &wire), s.Ledger(), s.Client()
		trips := int64(0)
		for range 5 { // the last knows all statements
			before := wire.trips.Load()
			s.OK(postgres.DoTx(s.Context(), c, pool, "k", addOne(table), rowlock.Shared()))
			trips = wire.trips.Load() - before
		}
		if trips != 4 {
			s.Errorf("%d round trips, want 4", trips)
		}
	})
}

// Wherever the connection breaks, nil means that the function's write is there, once.
func TestABrokenConnectionOfPgxNeverLeavesHalfASection(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		var wire link
		pool, table, c := pgxPool(s, &wire), s.Ledger(), s.Client()
		const writes = 3 // BEGIN and fence, the function's, release and COMMIT
		for n := range int64(writes) {
			for _, after := range []bool{false, true} {
				for range 2 {
					s.OK(postgres.DoTx(s.Context(), c, pool, "k", addOne(table)))
				}
				before, ran := ledger(s, table), 0
				wire.after.Store(after)
				wire.breaks.Store(n + 1)
				err := postgres.DoTx(s.Context(), c, pool, "k", func(ctx context.Context, tx pgx.Tx) error {
					ran++
					return addOne(table)(ctx, tx)
				})
				got, want := ledger(s, table), before
				if n == writes-1 {
					s.WantErr(err, rowlock.ErrUnknown)
					if after {
						want++
					}
				}
				if err == nil || got != want || ran != min(int(n), 1) {
					s.Errorf("write %d, after it is %v: %v, %d runs, and n is %d after %d", n, after, err, ran, got, before)
				}
				if left := wire.breaks.Load(); left != 0 {
					s.Errorf("write %d did not come", n)
				}
				s.OK(s.Take(c, "k").Unlock(s.Context()))
			}
		}
	})
}

// What an operator takes before the transaction has fenced the lock is refused, and the function
// does not run.
func TestASectionOfPgxThatHasLostItsKeyWritesNothing(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		cfg, err := pgxpool.ParseConfig(s.Env.Source)
		s.OK(err)
		cfg.PrepareConn = func(ctx context.Context, _ *pgx.Conn) (bool, error) {
			_, err := s.Client().ForceRelease(ctx, "k", rowlock.Force{Reason: "test"})
			return true, err
		}
		pool, err := pgxpool.NewWithConfig(s.Context(), cfg)
		s.OK(err)
		s.Cleanup(pool.Close)
		err = postgres.DoTx(s.Context(), s.Client(), pool, "k", func(context.Context, pgx.Tx) error {
			s.Error("the function ran")
			return nil
		})
		s.WantErr(err, rowlock.ErrFenced)
		s.WantErr(err, rowlock.ErrLost)
		if n := pool.Stat().AcquiredConns(); n != 0 {
			s.Errorf("%d connections are in use", n)
		}
		pool.Close()
		err = postgres.DoTx(s.Context(), s.Client(), pool, "k", func(context.Context, pgx.Tx) error { return nil })
		if err == nil || errors.Is(err, rowlock.ErrForeignTx) {
			s.Errorf("a pool that is closed: %v", err)
		}
	})
}

// The server skips a COMMIT that is sent with a release that fails.
func TestAReleaseThatChangesNoRowFailsTheCommit(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		pool, table, c := pgxPool(s, &link{}), s.Ledger(), s.Client()
		err := postgres.DoTx(s.Context(), c, pool, []string{"a", "k", "z"}, func(ctx context.Context, tx pgx.Tx) error {
			s.OK(addOne(table)(ctx, tx))
			_, err := tx.Exec(ctx, s.Env.Dialect.Fill(`UPDATE rowlock SET token = token + 1 WHERE key = 'k'`))
			return err
		})
		s.WantErr(err, rowlock.ErrFenced)
		if n := ledger(s, table); n != 0 {
			s.Errorf("n is %d, want 0", n)
		}
		for _, key := range []string{"a", "k", "z"} {
			wantFree(s, key)
		}
	})
}

func TestAFunctionThatEndsItsTransactionOfPgxIsToldSo(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		pool, table, c := pgxPool(s, &link{}), s.Ledger(), s.Client()
		says := func(query string) func(context.Context, pgx.Tx) error {
			return func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, query); return err }
		}
		err := postgres.DoTx(s.Context(), c, pool, "k", func(ctx context.Context, tx pgx.Tx) error {
			s.OK(addOne(table)(ctx, tx))
			_, _ = tx.Exec(ctx, `SELECT 1/0`)
			return nil
		})
		if err == nil || errors.Is(err, rowlock.ErrUnknown) {
			s.Errorf("a statement has failed unnoticed: %v", err)
		}
		for i, end := range []func(context.Context, pgx.Tx) error{
			func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) },
			func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) },
			says(`COMMIT`), says(`ROLLBACK`),
			func(ctx context.Context, tx pgx.Tx) error { // the pool has lent the connection to another
				s.OK(tx.Commit(ctx))
				next, err := pool.Begin(ctx)
				s.OK(err)
				s.Cleanup(func() { _ = next.Rollback(context.Background()) })
				return nil
			},
		} {
			ran := 0
			err := postgres.DoTx(s.Context(), c, pool, "k", func(ctx context.Context, tx pgx.Tx) error {
				ran++
				return end(ctx, tx)
			})
			s.WantErr(err, rowlock.ErrConfig)
			if ran != 1 {
				s.Errorf("%d: it ran %d times", i, ran)
			}
			wantFree(s, "k")
		}
		wantFree(s, "k")
		if n := ledger(s, table); n != 0 {
			s.Errorf("n is %d, want 0", n)
		}
	})
}

// A deferred trigger fails the COMMIT itself: for the first time as a serialization failure does.
func TestACommitOfPgxThatIsRefusedIsDefinite(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		pool, table, c := pgxPool(s, &link{}), s.Ledger(), s.Client()
		for _, state := range []string{"40001", "P0001"} {
			s.Exec(s.Env.DB, `CREATE SEQUENCE `+table+`_runs`)
			s.Exec(s.Env.DB, `CREATE FUNCTION `+table+`_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF nextval('`+table+`_runs') = 1 THEN RAISE 'of the test' USING ERRCODE = '`+state+`'; END IF; RETURN NULL;
				END $$`)
			s.Exec(s.Env.DB, `CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON `+table+` DEFERRABLE INITIALLY DEFERRED
				FOR EACH ROW EXECUTE FUNCTION `+table+`_refuse()`)
			before := ledger(s, table)
			err := postgres.DoTx(s.Context(), c, pool, "k", addOne(table))
			n := ledger(s, table) - before
			if state == "40001" && (err != nil || n != 1) {
				s.Errorf("%s: %v, and n is %d more, want 1", state, err, n)
			}
			if state == "P0001" && (err == nil || errors.Is(err, rowlock.ErrUnknown) || n != 0) {
				s.Errorf("%s: %v, and n is %d more, want 0", state, err, n)
			}
			wantFree(s, "k")
			s.Exec(s.Env.DB, `DROP TRIGGER refuse ON `+table)
			s.Exec(s.Env.DB, `DROP FUNCTION `+table+`_refuse`)
			s.Exec(s.Env.DB, `DROP SEQUENCE `+table+`_runs`)
		}
	})
}

func TestASectionOfPgxInEachModeAndBehindAPooler(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		table, c := s.Ledger(), s.Client()
		n := int64(0)
		for _, on := range []*servertest.Scene{s, {T: s.T, Env: s.Env.Behind(s)}} {
			for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
				if on != s && mode != "exec" && mode != "simple_protocol" {
					continue
				}
				as := on.With("default_query_exec_mode=" + mode)
				pool := pgxPool(as, &link{})
				for range 3 {
					s.OK(postgres.DoTx(s.Context(), c, pool, "k", addOne(table),
						rowlock.TxOptions(sql.TxOptions{Isolation: sql.LevelSerializable})))
					n++
				}
			}
		}
		if got := ledger(s, table); got != n {
			s.Errorf("n is %d, want %d", got, n)
		}
		wantFree(s, "k")
	})
}
