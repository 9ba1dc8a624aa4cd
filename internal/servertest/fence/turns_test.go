package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// A holder whose COMMIT times out does not know its outcome, and may try again under the same
// lock while the COMMIT is still under way. The second transaction sees what the first has done.
func TestFencesOfOneLockTakeTurns(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(s *servertest.Scene) {
		for i, opts := range isolations(s) {
			s.Part(fmt.Sprint("isolation ", i),
				func(s *servertest.Scene) { retryBesideItsOriginal(s, opts) })
		}
	})
}

func retryBesideItsOriginal(s *servertest.Scene, opts *sql.TxOptions) {
	s.Helper()
	table := journal(s)
	gate := faultdb.NewGate()
	defer gate.Wait()
	defer gate.Release()
	db, err := faultdb.Open(s.Env.Driver, s.Env.Source,
		faultdb.OnKind(faultdb.Nth(1, faultdb.SendLate(gate)), faultdb.Commit))
	s.OK(err)
	defer db.Close()
	l := s.Take(s.Client(), "k")
	defer func() { _ = l.Unlock(context.Background()) }()
	if err := enter(s, db, opts, l, table); err == nil {
		s.Fatal("the first COMMIT was answered")
	}
	done := make(chan error, 1)
	go func() { done <- enterUntilDone(s, db, opts, l, table) }()
	s.Eventually("the retry to wait for the first transaction, or to end",
		func() bool { return len(done) > 0 || waiting(s) })
	gate.Release()
	gate.Wait()
	s.OK(<-done)
	if n := s.Number(`SELECT count(*) FROM ` + table + ` AS a JOIN ` + table +
		` AS b ON a.n = b.n`); n != 2 {
		s.Errorf("two transactions of one lock wrote the same number, so that the second "+
			"did not see the first: %d pairs, want 2", n)
	}
}

// journal makes a table of the application's that numbers its entries by counting them.
func journal(s *servertest.Scene) (table string) {
	s.Helper()
	table = s.Env.Dialect.Names().Prefix + "journal"
	s.Exec(s.Env.DB, `CREATE TABLE `+table+` (n BIGINT NOT NULL)`)
	s.Cleanup(func() { _, _ = s.Env.DB.Exec(`DROP TABLE ` + table) })
	return table
}

// enter adds an entry to the journal, in a fenced transaction.
func enter(s *servertest.Scene, db *sql.DB, opts *sql.TxOptions, l *rowlock.Lock,
	table string,
) error {
	ctx := context.Background() // that of a COMMIT sent late: drivers keep it
	tx, err := db.BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := l.Fence(ctx, tx); err != nil {
		return err
	}
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM `+table).Scan(&n); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx,
		fmt.Sprintf(`INSERT INTO %s VALUES (%d)`, table, n+1)); err != nil {
		return err
	}
	return tx.Commit()
}

// enterUntilDone tries again what was certainly not done, as ErrBusy says to.
func enterUntilDone(s *servertest.Scene, db *sql.DB, opts *sql.TxOptions, l *rowlock.Lock,
	table string,
) error {
	for {
		err := enter(s, db, opts, l, table)
		conflict := err != nil && sqlstore.Judge(s.Env.Dialect, err).Class == sqlstore.Conflict
		if err == nil || !errors.Is(err, rowlock.ErrBusy) && !conflict {
			return err
		}
	}
}

// waiting reports whether a statement waits for a lock. SQLite does not show that: there it waits
// for a while.
func waiting(s *servertest.Scene) bool {
	s.Helper()
	switch s.Env.Driver {
	case "pgx":
		return s.Number(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`) > 0
	case "mysql":
		if s.Is("mysql") {
			return s.Number(`SELECT count(*) FROM performance_schema.data_lock_waits`) > 0
		}
		s.Elapse(150 * time.Millisecond) // InnoDB repeats its last answer within 100 ms
		return s.Number(
			`SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`) > 0
	}
	s.Elapse(100 * time.Millisecond)
	return true
}

// A transaction that stays open renews nothing that its holder may trust: not even when it fences
// again, and reads what it has written.
func TestAnOpenTransactionsOwnFenceIsNotTrusted(t *testing.T) {
	t.Parallel()
	// The holder trusts its lease for a margin after each answer, and asks four times in that time: of
	// one of 0.5 s a busy machine has kept the watchdog waiting for three quarters.
	const ttl, margin = 8 * time.Second, 2 * time.Second
	servertest.Each(t, func(s *servertest.Scene) {
		c := s.Client(servertest.WithTTL(ttl), func(c *rowlock.Config) { c.Margin = margin })
		l, tx := s.Fenced(c, "k", false, nil)
		began := time.Now()
		s.Elapse(ttl / 2)
		s.OK(l.Fence(s.Context(), tx)) // would end half a TTL after the first
		s.Elapse(ttl/2 - time.Since(began)%(ttl/2))
		s.Eventually("the committed lease to expire",
			func() bool { return servertest.LeaseLeft(s.T, s.Env, "k") <= 0 })
		if trusted := time.Until(l.Deadline()); trusted > margin {
			s.Errorf("the lease has expired, and its holder trusts it for %s "+
				"by an expiry that may be rolled back", trusted)
		}
		if err := context.Cause(l.Context()); err != nil {
			s.Errorf("the lock ended within its own fence: %v", err)
		}
		s.OK(tx.Rollback())
		next := s.Take(s.Client(), "k")
		s.Above(next, l)
		<-l.Context().Done()
		s.WantErr(context.Cause(l.Context()), rowlock.ErrLost)
		s.OK(next.Unlock(s.Context()))
	})
}

// A lease with NoRenew ends at its time, fenced or not.
func TestAFenceDoesNotRenewWhatIsNotToBeRenewed(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(s *servertest.Scene) {
		l := s.Take(s.Client(), "k", rowlock.TTL(time.Minute), rowlock.NoRenew())
		s.Exec(s.Env.DB, `UPDATE {rowlock} SET expires_at = {now} + {second} WHERE {key} = ?`,
			[]byte("k"))
		fencedFor(s, l, 0)
		if left := servertest.LeaseLeft(s.T, s.Env, "k"); left > time.Second {
			s.Errorf("%s remain, of 1 s", left)
		}
	})
}
