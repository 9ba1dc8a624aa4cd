package section

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
)

// quietly has a client send nothing but what its calls need.
func quietly(cfg *rowlock.Config) {
	cfg.Hints, cfg.PollMin, cfg.PollMax = rowlock.HintsOff, servertest.Patience, servertest.Patience
	cfg.Reaper.Off = true
}

// waits returns when n calls of c wait.
func waits(s *servertest.Scene, c *rowlock.Client, n int64) {
	s.Helper()
	s.Eventually("the others to wait", func() bool { return c.Stats().Waiting == n })
}

func rowOf(s *servertest.Scene, c *rowlock.Client) lease.Record {
	s.Helper()
	rows, err := c.Inspect(s.Context(), lease.Filter{Keys: []string{"k"}})
	s.OK(err)
	if len(rows) != 1 {
		s.Fatalf("%d rows", len(rows))
	}
	return rows[0]
}

// runs is a way to run sections.
type runs func(ctx context.Context, f func() error) error

// both are the ways in which a COMMIT hands over: database/sql, and pgx with all in one round trip.
func both(s *servertest.Scene, c *rowlock.Client, table string) map[string]runs {
	s.Helper()
	cfg, err := pgxpool.ParseConfig(s.Env.Source)
	s.OK(err)
	cfg.MaxConns = 8
	pool, err := pgxpool.NewWithConfig(s.Context(), cfg)
	s.OK(err)
	s.Cleanup(pool.Close)
	set := `UPDATE ` + table + ` SET n = n + 1 WHERE id = 1`
	return map[string]runs{
		"database/sql": func(ctx context.Context, f func() error) error {
			return c.DoTx(ctx, "k", func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, set)
				return errors.Join(err, f())
			})
		},
		"pgx": func(ctx context.Context, f func() error) error {
			return postgres.DoTx(ctx, c, pool, "k", func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, set)
				return errors.Join(err, f())
			})
		},
	}
}

// Callers of one process that wait for a key get it by the COMMITs of sections: rowlock's own
// connections send nothing, and the tokens rise by one.
func TestTheCommitOfASectionIsTheHandOver(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		const callers = 5
		table, log := s.Ledger(), &faultdb.Log{}
		db, err := faultdb.Open(s.Env.Driver, s.Env.Source, log)
		s.OK(err)
		s.Cleanup(func() { _ = db.Close() })
		c := s.ClientOn(db, quietly)
		// DoTx of the client would be on the logged connections, too.
		plain, _, _ := begins(s)
		ways := both(s, c, table)
		ways["database/sql"] = func(ctx context.Context, f func() error) error {
			return rowlock.DoTxOn(ctx, c, plain, "k", func(ctx context.Context, tx *sql.Tx) error {
				return errors.Join(add(table)(ctx, tx), f())
			})
		}
		for name, run := range ways {
			before, inspect := ledger(s, table), s.Client()
			var tokens []rowlock.Token
			begun, all := make(chan struct{}, callers), sync.WaitGroup{}
			for n := range callers {
				all.Go(func() {
					s.OK(run(s.Context(), func() error {
						if n == 0 {
							begun <- struct{}{}
							waits(s, c, callers-1)
							log.Reset()
						}
						row := rowOf(s, inspect)
						tokens = append(tokens, row.Token)
						if !row.Held {
							s.Errorf("%s: %+v", name, row)
						}
						if len(tokens) == callers {
							if n := log.Count(func(op faultdb.Op) bool { return op.Executes() }); n > 0 {
								s.Errorf("%s: %d statements beside: %q", name, n, log.Queries())
							}
						}
						return nil
					}))
				})
				if n == 0 {
					<-begun
				}
			}
			all.Wait()
			for i, token := range tokens {
				if token != tokens[0]+rowlock.Token(i) {
					s.Errorf("%s: tokens %v", name, tokens)
				}
			}
			if n := ledger(s, table); n != before+callers {
				s.Errorf("%s: n is %d after %d", name, n, before)
			}
			wantFree(s, "k")
		}
		if n := c.Stats(); n.Lost != 0 || n.UnlockFailed != 0 || n.Held != 0 || n.Acquired != 2*callers || n.Released != 2*callers {
			s.Errorf("counted %+v", n)
		}
	})
}

type locked struct {
	*rowlock.Lock
	err error
}

// next runs a section that another call waits behind, with its COMMIT in the hands of fault, and
// returns what the other gets and the section's error.
func next(
	s *servertest.Scene, c *rowlock.Client, table string, fault faultdb.Fault, between func(ctx context.Context),
) (waited <-chan locked, section error) {
	s.Helper()
	begin, faults, _ := begins(s)
	done := make(chan locked, 1)
	section = rowlock.DoTxOn(s.Context(), c, begin, "k", func(in context.Context, tx *sql.Tx) error {
		go func() {
			l, err := c.Lock(s.Context(), "k")
			done <- locked{l, err}
		}()
		waits(s, c, 1)
		faults.Set(faultdb.OnFunc(isCommit, faultdb.Nth(1, fault)))
		if between != nil {
			go between(s.Context())
		}
		return add(table)(in, tx)
	})
	faults.Set(nil)
	return done, section
}

// In each of these the next caller has the key by a statement of its own, or not at all.
func TestACommitThatIsNotAnsweredHandsNothingOver(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		table, c := s.Ledger(), s.Client()
		for _, fault := range []faultdb.Fault{faultdb.FailBeforeSend(), faultdb.LoseReply()} {
			before := rowlock.Token(0)
			if rows, err := c.Inspect(s.Context(), lease.Filter{Keys: []string{"k"}}); err == nil && len(rows) > 0 {
				before = rows[0].Token
			}
			done, err := next(s, c, table, fault, nil)
			s.WantErr(err, rowlock.ErrUnknown)
			got := servertest.Await(s, servertest.Patience, done, "the next caller")
			s.OK(got.err)
			if row := rowOf(s, c); !row.Held || row.Token <= before+1 {
				s.Errorf("%+v after token %d", row, before)
			}
			s.OK(got.Unlock(s.Context()))
			wantFree(s, "k")
		}
	})
}

// The next caller leaves, or the client closes, while the COMMIT is on its way.
func TestWhatNoCallerWantsAnyMoreIsFreeAfterTheCommit(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		table := s.Ledger()
		for name, end := range map[string]func(c *rowlock.Client, cancel func()){
			"ctx":   func(_ *rowlock.Client, cancel func()) { cancel() },
			"close": func(c *rowlock.Client, _ func()) { go func() { _ = c.Close() }() },
		} {
			c := s.Client()
			gate := faultdb.NewGate()
			var left error
			left = errTest
			ended := make(chan struct{})
			begin, faults, _ := begins(s)
			ctx, cancel := context.WithCancel(s.Context())
			err := rowlock.DoTxOn(s.Context(), c, begin, "k", func(in context.Context, tx *sql.Tx) error {
				go func() {
					defer close(ended)
					_, left = c.Lock(ctx, "k")
				}()
				waits(s, c, 1)
				faults.Set(faultdb.OnFunc(isCommit, faultdb.Nth(1, faultdb.Block(gate))))
				go func() {
					<-gate.Arrived()
					end(c, cancel)
					<-ended
					gate.Release()
				}()
				return add(table)(in, tx)
			})
			cancel()
			s.OK(err)
			if name == "ctx" {
				s.WantErr(left, context.Canceled)
			} else {
				s.WantErr(left, rowlock.ErrClosed)
				s.OK(c.Close())
			}
			wantFree(s, "k")
		}
	})
}

// A forced release waits for the COMMIT, and takes the key from the next caller.
func TestAForcedReleaseTakesWhatACommitHasHandedOver(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		table, c, operator := s.Ledger(), s.Client(servertest.WithTTL(3*time.Second)), s.Client()
		gate, forced := faultdb.NewGate(), make(chan error, 1)
		done, err := next(s, c, table, faultdb.Block(gate), func(ctx context.Context) {
			<-gate.Arrived()
			go func() {
				_, err := operator.ForceRelease(ctx, "k", rowlock.Force{Reason: "test"})
				forced <- err
			}()
			s.Elapse(200 * time.Millisecond)
			gate.Release()
		})
		s.OK(err)
		l := servertest.Await(s, servertest.Patience, done, "the next caller").Lock
		if err := servertest.Await(s, servertest.Patience, forced, "the forced release"); err == nil {
			s.Eventually("the lock to end", func() bool { return l.Context().Err() != nil })
			s.WantErr(context.Cause(l.Context()), rowlock.ErrLost)
		} else {
			s.WantErr(err, rowlock.ErrBusy)
			s.OK(l.Unlock(s.Context()))
		}
		wantFree(s, "k")
	})
}

// Where the application has turned durable commits off, one that grants is durable all the same. A
// level of the DSN is that of every grant.
func TestACommitThatHandsOverIsDurable(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		table := s.Ledger()
		for level, want := range map[string]string{"off": "on", "local": "local", "on": "on", "remote_apply": "remote_apply"} {
			as := s.With("synchronous_commit=" + level)
			c := as.Client()
			s.Exec(s.Env.DB, `CREATE TABLE `+table+`_seen (level text, grants boolean)`)
			s.Exec(s.Env.DB, `CREATE FUNCTION `+table+`_see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				INSERT INTO `+table+`_seen SELECT current_setting('synchronous_commit'), owner IS NOT NULL
				FROM `+s.Env.Table("rowlock")+` WHERE key = 'k'; RETURN NULL; END $$`)
			s.Exec(s.Env.DB, `CREATE CONSTRAINT TRIGGER see AFTER UPDATE ON `+table+` DEFERRABLE INITIALLY DEFERRED
				FOR EACH ROW EXECUTE FUNCTION `+table+`_see()`)
			// What only releases is as durable as the application wants.
			durable := map[bool]string{true: want, false: level}
			for name, run := range both(as, c, table) {
				granted := 0
				// A section that a slow machine stretches does not hand over.
				for tries := 20; granted == 0 && tries > 0; tries-- {
					for _, one := range commitsOf(s, c, table, run) {
						if one.level != durable[one.grants] {
							s.Errorf("%s, %s: a COMMIT at %+v, want %q", name, level, one, durable[one.grants])
						}
						if one.grants {
							granted++
						}
					}
				}
				if granted == 0 {
					s.Errorf("%s, %s: no COMMIT has handed over", name, level)
				}
			}
			s.Exec(s.Env.DB, `DROP TABLE `+table+`_seen`)
			s.Exec(s.Env.DB, `DROP TRIGGER see ON `+table)
			s.Exec(s.Env.DB, `DROP FUNCTION `+table+`_see`)
		}
	})
}

// seen is what a COMMIT was like.
type seen struct {
	level  string
	grants bool
}

// commitsOf runs a section that another waits for, and then that one.
func commitsOf(s *servertest.Scene, c *rowlock.Client, table string, run runs) (all []seen) {
	s.Helper()
	s.Exec(s.Env.DB, `TRUNCATE `+table+`_seen`)
	var next sync.WaitGroup
	s.OK(run(s.Context(), func() error {
		next.Go(func() { s.OK(run(s.Context(), func() error { return nil })) })
		waits(s, c, 1)
		return nil
	}))
	next.Wait()
	rows, err := s.Env.DB.QueryContext(s.Context(), `SELECT level, grants FROM `+table+`_seen`)
	s.OK(err)
	for rows.Next() {
		var one seen
		s.OK(rows.Scan(&one.level, &one.grants))
		all = append(all, one)
	}
	s.OK(rows.Close())
	if len(all) != 2 {
		s.Errorf("the COMMITs were %+v, want two", all)
	}
	return all
}

// In a table that was written anew, as by a restore, a section runs again and releases. Nothing is
// handed over any more before a session has learned of the history.
func TestASectionInAnotherHistoryReleases(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		table := s.Ledger()
		for _, name := range []string{"database/sql", "pgx"} {
			c := s.Client()
			run, before, ran := both(s, c, table)[name], ledger(s, table), 0
			s.Exec(s.Env.DB, s.Env.SQL(`VACUUM FULL {rowlock}`))
			for range 2 {
				var next sync.WaitGroup
				s.OK(run(s.Context(), func() error {
					if ran++; c.Stats().Waiting == 0 {
						next.Go(func() { s.OK(run(s.Context(), func() error { return nil })) })
						waits(s, c, 1)
					}
					return nil
				}))
				next.Wait()
			}
			if n := ledger(s, table); n != before+4 || ran != 3 {
				s.Errorf("%s: n is %d after %d, and the first sections ran %d times", name, n, before, ran)
			}
			wantFree(s, "k")
		}
	})
}

// A process that is killed between the hand-over and its COMMIT has handed nothing over: the row is
// the old owner's until it expires. Its token need not be 1: what Open rehearses raises the floor of
// one bucket of keys, once in a thousand times that of this key.
func TestAProcessThatIsKilledBeforeItsCommitHandsNothingOver(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		const ttl = 3 * time.Second
		table, c := s.Ledger(), s.Client()
		child := s.Child("pass", table, ttl)
		child.Expect("between")
		before := rowOf(s, c)
		child.Kill()
		if now := rowOf(s, c); !now.Held || now.Token != before.Token {
			s.Errorf("%+v after %+v", now, before)
		}
		l, err := c.Lock(s.Context(), "k")
		s.OK(err)
		if l.Token() != before.Token+1 {
			s.Errorf("token %d after %d", l.Token(), before.Token)
		}
		s.OK(l.Unlock(s.Context()))
		if n := ledger(s, table); n != 0 {
			s.Errorf("n is %d", n)
		}
	})
}

func TestChildAtWork(t *testing.T) {
	servertest.AtWork(t, map[string]servertest.Job{"pass": pass})
}

// pass stands between the hand-over and its COMMIT.
func pass(w *servertest.Worker) error {
	gate := faultdb.NewGate()
	var sent faultdb.Log
	inject := faultdb.Any(&sent, faultdb.OnFunc(isCommit, faultdb.Nth(1, faultdb.Block(gate))))
	db, err := faultdb.Open("pgx", strings.Split(os.Getenv("ROWLOCK_CHILD"), "\n")[5], inject)
	if err != nil {
		return err
	}
	go func() {
		<-gate.Arrived()
		handed := sent.Count(func(op faultdb.Op) bool { return strings.Contains(op.Query, "rowlock hand-over") })
		if handed != 1 {
			fmt.Println("child: no hand-over in", sent.Queries())
		}
		fmt.Println("child: between")
	}()
	ctx := context.Background()
	begin := func(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, *sql.Tx, error) {
		tx, err := db.BeginTx(ctx, opts)
		return tx, tx, err
	}
	return rowlock.DoTxOn(ctx, w.Locks, begin, "k", func(ctx context.Context, tx *sql.Tx) error {
		go func() { _, _ = w.Locks.Lock(context.Background(), "k") }()
		for w.Locks.Stats().Waiting == 0 {
			<-time.After(time.Millisecond)
		}
		return add(w.Table)(ctx, tx)
	})
}
