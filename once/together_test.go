package once_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/once"
)

// eager waits for long enough that no repeat of a test gives up.
func eager() once.Config { return once.Config{Wait: patience, Reap: -1} }

func TestConcurrentRepeatsRunOnce(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		all := []*once.Once{r.open(t, r.DB, eager()), r.open(t, r.Pool(t), eager())} // as two processes
		for round := range 5 {
			name := fmt.Sprint("e", round)
			var runs, ran atomic.Int64
			inParallel(32, func(i int) {
				res, err := all[i%len(all)].Do(t.Context(), once.Request{Key: name}, then(r.effect(name, "value"), func() error { runs.Add(1); return nil }))
				if err != nil || string(res.Value) != "value" {
					t.Errorf("got %+v, %v", res, err)
				}
				if !res.Replayed {
					ran.Add(1)
				}
			})
			r.wantEffects(t, name, 1)
			if ran.Load() != 1 || runs.Load() != 1 {
				t.Errorf("%d runs, %d of 32 were told that they ran", runs.Load(), ran.Load())
			}
		}
	})
}

// Those who wait for one that is rolled back run it themselves, one after another, until one is
// committed.
func TestTheNextRunsWhenTheFirstIsRolledBack(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		all := []*once.Once{r.open(t, r.DB, eager()), r.open(t, r.Pool(t), eager())}
		var runs, failed atomic.Int64
		inParallel(16, func(i int) {
			f := then(r.effect("e", "value"), func() error {
				if runs.Add(1) <= 3 {
					return errors.New("no")
				}
				return nil
			})
			if _, err := all[i%2].Do(t.Context(), once.Request{Key: "key"}, f); err != nil {
				failed.Add(1)
			}
		})
		r.wantEffects(t, "e", 1)
		if runs.Load() != 4 || failed.Load() != 3 {
			t.Errorf("%d runs, %d failures; want 4, 3", runs.Load(), failed.Load())
		}
	})
}

// Of those who find an expired row, one takes it over.
func TestAnExpiredKeyIsTakenOverOnce(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		all := []*once.Once{r.open(t, r.DB, eager()), r.open(t, r.Pool(t), eager()), r.open(t, r.Pool(t), eager())}
		for round := range 5 {
			do(t, all[0], once.Request{Key: "key"}, r.effect("old", "old"))
			r.expire(t)
			name := fmt.Sprint("e", round)
			inParallel(9, func(i int) {
				if res, err := all[i%3].Do(t.Context(), once.Request{Key: "key"}, r.effect(name, "new")); err != nil || string(res.Value) != "new" {
					t.Errorf("got %+v, %v", res, err)
				}
			})
			r.wantEffects(t, name, 1)
			r.expire(t)
		}
	})
}

// InnoDB: of three who insert the same key the first rolls back, which is a deadlock between the
// other two.
func TestThreeInsertersOfWhomTheFirstRollsBack(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		first := r.open(t, r.DB, eager())
		var rest []*once.Once
		for range 3 {
			rest = append(rest, r.open(t, r.Pool(t), eager()))
		}
		for round := range 3 {
			name := fmt.Sprint("e", round)
			busy := r.inFlight(t, first, once.Request{Key: name})
			var wg sync.WaitGroup
			for _, o := range rest {
				wg.Go(func() { do(t, o, once.Request{Key: name}, r.effect(name, "value")) })
			}
			r.waiting(t, len(rest))
			busy.fail()
			wg.Wait()
			r.wantEffects(t, name, 1)
		}
	})
}

// wantWaited has f told that the key is in flight: after the wait that is configured and not much
// later, or at once where none is. A caller that waits for the row does so for a second.
func wantWaited(t *testing.T, cfg once.Config, f func() error) {
	t.Helper()
	limit := 4 * time.Second
	if cfg.NoWait {
		limit = 900 * time.Millisecond
	}
	what := fmt.Sprintf("%+v: the answer", cfg)
	servertest.AtOnce(t, limit, what, func() time.Duration {
		began := time.Now()
		wantInFlight(t, f())
		took := time.Since(began)
		if took < cfg.Wait {
			t.Errorf("%s took %s", what, took)
		}
		return took
	})
}

func TestOneInFlightIsWaitedForSoLong(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		cfg := once.Config{Wait: 200 * time.Millisecond, Reap: -1}
		here, there := r.open(t, r.DB, cfg), r.open(t, r.Pool(t), cfg)
		busy := r.inFlight(t, here, once.Request{Key: "key"})
		for _, o := range []*once.Once{here, there} {
			if o == there && r.Name == "sqlite" {
				continue // is busy, not in flight: see below
			}
			wantWaited(t, cfg, func() error {
				_, err := o.Do(t.Context(), once.Request{Key: "key"}, never(t))
				return err
			})
		}
		busy.end()
		want(t, do(t, there, once.Request{Key: "key"}, never(t)), "value", true)
	})
}

func TestWhoDoesNotWaitIsToldAtOnce(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		cfg := once.Config{NoWait: true, Reap: -1}
		here, there := r.open(t, r.DB, cfg), r.open(t, r.Pool(t), cfg)
		busy := r.inFlight(t, here, once.Request{Key: "key", Fingerprint: once.Fingerprint()})
		for _, o := range []*once.Once{here, there} {
			if o == there && r.Name == "sqlite" {
				continue
			}
			wantWaited(t, cfg, func() error {
				_, err := o.Do(t.Context(), once.Request{Key: "key", Fingerprint: once.Fingerprint()}, never(t))
				return err
			})
		}
		_, err := here.Do(t.Context(), once.Request{Key: "key"}, never(t))
		wantIs(t, err, once.ErrMismatch) // which is known here
		busy.end()
		want(t, do(t, there, once.Request{Key: "key", Fingerprint: once.Fingerprint()}, never(t)), "value", true)
		want(t, do(t, there, once.Request{Key: "another"}, r.effect("e", "")), "", false)
	})
}

// To take over an expired row is to wait for the row, not for its key: for no longer than that.
func TestOneInFlightOnAnExpiredKeyIsWaitedForNoLonger(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name == "sqlite" {
			t.Skip("is busy, not in flight")
		}
		here := r.once(t)
		do(t, here, once.Request{Key: "key"}, r.effect("old", "old"))
		r.expire(t)
		busy := r.inFlight(t, here, once.Request{Key: "key"})
		for _, cfg := range []once.Config{{Wait: 200 * time.Millisecond, Reap: -1}, {NoWait: true, Reap: -1}} {
			o := r.open(t, r.Pool(t), cfg)
			wantWaited(t, cfg, func() error {
				_, err := o.Do(t.Context(), once.Request{Key: "key"}, never(t))
				return err
			})
		}
		busy.end()
		want(t, do(t, here, once.Request{Key: "key"}, never(t)), "value", true)
	})
}

// Another takes the expired key after a call has read it. PostgreSQL waits for that one as long as
// for any other; MySQL and MariaDB have the row locked since it was read, and the other one waits.
func TestOneThatHasTakenAnExpiredKeyIsWaitedForNoLonger(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name != "postgres" {
			t.Skip("the row is locked when it is read")
		}
		here := r.once(t)
		do(t, here, once.Request{Key: "key"}, r.effect("old", "old"))
		cfg := once.Config{NoWait: true, Reap: -1}
		wantWaited(t, cfg, func() error {
			r.expire(t)
			db, faults, _ := r.faulty(t)
			o := r.open(t, db, cfg)
			gate := faultdb.NewGate()
			defer gate.Release()
			faults.Set(faultdb.OnFunc(func(op faultdb.Op) bool {
				return op.Executes() && strings.Contains(op.Query, "once-take")
			}, faultdb.Nth(1, faultdb.Block(gate))))
			ended := servertest.Aside(func() error {
				_, err := o.Do(t.Context(), once.Request{Key: "key"}, never(t))
				return err
			})
			<-gate.Arrived()
			busy := r.inFlight(t, here, once.Request{Key: "key"})
			defer busy.end()
			gate.Release()
			return servertest.Await(t, patience, ended, "the answer")
		})
	})
}

// A transaction that has an expired row locked, and does not change it, is waited for as well, as a
// sweep is whose rows another one keeps.
func TestAnExpiredRowThatIsLockedIsWaitedFor(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name != "postgres" {
			t.Skip("the statement itself waits")
		}
		do(t, r.once(t), once.Request{Key: "key"}, r.effect("old", "old"))
		r.expire(t)
		db, _, log := r.faulty(t)
		o := r.open(t, db, eager())
		keeps, err := r.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer keeps.Rollback()
		if _, err := keeps.ExecContext(t.Context(), r.SQL(`SELECT 1 FROM {rowlock_once} FOR UPDATE`)); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		ended := servertest.Aside(func() error {
			_, err := o.In(t.Context(), tx, once.Request{Key: "key"}, r.effect("new", "new"))
			return err
		})
		takes := func(op faultdb.Op) bool { return op.Executes() && strings.Contains(op.Query, "once-take") }
		servertest.Eventually(t, "the row is looked at again and again", func() bool { return log.Count(takes) > 6 })
		if err := keeps.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := servertest.Await(t, patience, ended, "the call"); err != nil {
			t.Error(err)
		}
	})
}

// A wait that ends with its context says so: in this process, and in the database, where on SQLite
// it is BEGIN that waits.
func TestAWaitEndsWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		here, there := r.open(t, r.DB, eager()), r.open(t, r.Pool(t), eager())
		busy := r.inFlight(t, here, once.Request{Key: "key"})
		for _, o := range []*once.Once{here, there} {
			ctx, cancel := context.WithCancel(t.Context())
			ended := servertest.Aside(func() error {
				_, err := o.Do(ctx, once.Request{Key: "key"}, never(t))
				return err
			})
			if o == here {
				once.AwaitWaiters(o, "key", 1)
			} else {
				r.waiting(t, 1) // on SQLite it cannot be seen
			}
			cancel()
			err := servertest.Await(t, patience/2, ended, "the end of the wait")
			wantIs(t, err, context.Canceled)
			if o == here {
				wantIs(t, err, once.ErrInFlight)
			}
		}
		busy.end()
		want(t, do(t, there, once.Request{Key: "key"}, never(t)), "value", true)
	})
}

// Where one after another fails, those who wait elsewhere have a new one in their way each time.
// The wait is not endless for that, and what it ends with is no failure of the database's.
func TestAWaitBehindManyThatFailEndsToo(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name == "sqlite" {
			t.Skip("is busy, not in flight")
		}
		const wait, work = time.Second, 900 * time.Millisecond
		var given atomic.Int64
		var all []*once.Once // before the first begins: who opens late does not wait for the others
		for range 8 {
			all = append(all, r.open(t, r.Pool(t), once.Config{Wait: wait, Reap: -1}))
		}
		inParallel(len(all), func(i int) {
			o, began := all[i], time.Now()
			ran := false
			_, err := o.Do(t.Context(), once.Request{Key: "key"}, func(context.Context, *sql.Tx) ([]byte, error) {
				ran = true
				if given.Load() == 0 {
					time.Sleep(work) // it is the time that the others wait which is measured
				}
				return nil, errFailed
			})
			if ran {
				return
			}
			given.Add(1)
			wantInFlight(t, err)
			if took := time.Since(began); took < wait || took > wait+slack {
				t.Errorf("it took %s: %v", took, err)
			}
		})
		if given.Load() == 0 {
			t.Error("nobody waited for too long")
		}
	})
}

// slack is what a wait may take beyond its bound: in the databases, and because the machine is
// busy.
const slack = 6 * time.Second

// Were each repeat to wait with a connection, the one who works could not get what it needs.
func TestWaitingHoldsNoConnection(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.DB.SetMaxOpenConns(2)
		o := r.open(t, r.DB, eager())
		busy := r.inFlight(t, o, once.Request{Key: "key"})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if res, err := o.Do(t.Context(), once.Request{Key: "key"}, never(t)); err != nil || !res.Replayed {
					t.Errorf("got %+v, %v", res, err)
				}
			})
		}
		once.AwaitWaiters(o, "key", 20)
		for range 20 { // each of these needs the other connection
			r.count(t, `SELECT COUNT(*) FROM `+r.effects)
		}
		busy.end()
		wg.Wait()
	})
}

// waiting returns when the server has n claims that wait for another transaction. SQLite's wait by
// themselves.
func (r *rig) waiting(tb testing.TB, n int) {
	tb.Helper()
	query := map[string]string{
		"postgres": `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%` + r.Table("rowlock_once") + `%'`,
		"mariadb":  "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%INSERT % INTO %" + r.Table("rowlock_once") + "%' AND info NOT LIKE '%processlist%'",
		// MySQL's process list fails while any statement has bytes in it that are no text.
		"mysql": `SELECT COUNT(DISTINCT w.requesting_thread_id) FROM performance_schema.data_lock_waits AS w
			JOIN performance_schema.data_locks AS l ON l.engine_lock_id = w.requesting_engine_lock_id
			WHERE l.object_name = '` + r.Dialect.Names().Prefix + `rowlock_once'`,
	}
	if query[r.Name] == "" {
		return
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if r.count(tb, query[r.Name]) >= n {
			return
		}
	}
	tb.Errorf("there never were %d who waited", n)
}

// deed is a call that has written and stands before its commit.
type deed struct {
	finish chan error
	over   chan struct{} // closed when the test is
	wg     sync.WaitGroup
}

func (r *rig) inFlight(tb testing.TB, o *once.Once, req once.Request) *deed {
	tb.Helper()
	d := &deed{finish: make(chan error), over: make(chan struct{})}
	// Before the tables are dropped: a transaction that has them open would block that forever.
	tb.Cleanup(func() {
		close(d.over)
		d.wg.Wait()
	})
	inside := make(chan struct{})
	d.wg.Go(func() {
		_, err := o.Do(tb.Context(), req, then(r.effect(req.Key, "value"), func() error {
			close(inside)
			select {
			case err := <-d.finish:
				return err
			case <-d.over:
				return errFailed
			}
		}))
		if err != nil && err != errFailed {
			tb.Error(err)
		}
	})
	<-inside
	return d
}

func (d *deed) end()  { d.finishWith(nil) }
func (d *deed) fail() { d.finishWith(errFailed) }

func (d *deed) finishWith(err error) {
	d.finish <- err
	d.wg.Wait()
}

var errFailed = errors.New("no")

func wantInFlight(tb testing.TB, err error) {
	tb.Helper()
	var e *once.InFlightError
	if !errors.As(err, &e) || e.Key != "key" || e.RetryAfter <= 0 {
		tb.Errorf("got %v", err)
	}
	wantIs(tb, err, once.ErrInFlight)
}

// On SQLite a repeat in another process finds the file's write lock taken, by an unknown
// transaction.
func TestOnSQLiteAnotherProcessIsBusy(t *testing.T) {
	r := newRig(t, testdb.Kinds[0].Open(t))
	cfg := once.Config{Wait: 50 * time.Millisecond, Reap: -1}
	db, err := sql.Open("sqlite", r.impatient())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	there := r.open(t, db, cfg)
	busy := r.inFlight(t, r.open(t, r.DB, cfg), once.Request{Key: "key"})
	_, err = there.Do(t.Context(), once.Request{Key: "key"}, never(t))
	wantIs(t, err, errBusy)
	busy.end()
	want(t, do(t, there, once.Request{Key: "key"}, never(t)), "value", true)
}
