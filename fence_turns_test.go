package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// A holder whose COMMIT times out does not know whether it was made, and may try again under the same lock while the COMMIT is still
// under way. The second transaction sees what the first has done.
func TestFencesOfOneLockTakeTurns(t *testing.T) {
	eachScene(t, func(s *scene) {
		for i, opts := range s.isolations() {
			s.part(fmt.Sprint("isolation ", i), func(s *scene) { s.retryBesideItsOriginal(opts) })
		}
	})
}

func (s *scene) retryBesideItsOriginal(opts *sql.TxOptions) {
	s.Helper()
	table := s.journal()
	gate := faultdb.NewGate()
	defer gate.Wait()
	defer gate.Release()
	db, err := faultdb.Open(s.env.Driver, s.env.Source, faultdb.OnKind(faultdb.Nth(1, faultdb.SendLate(gate)), faultdb.Commit))
	s.ok(err)
	defer db.Close()
	l := s.take(s.client(), "k")
	defer func() { _ = l.Unlock(context.Background()) }()
	if err := s.enter(db, opts, l, table); err == nil {
		s.Fatal("the first COMMIT was answered")
	}
	done := make(chan error, 1)
	go func() { done <- s.enterUntilDone(db, opts, l, table) }()
	s.eventually("the retry to wait for the first transaction, or to end", func() bool { return len(done) > 0 || s.waiting() })
	gate.Release()
	gate.Wait()
	s.ok(<-done)
	if n := s.number(`SELECT count(*) FROM ` + table + ` AS a JOIN ` + table + ` AS b ON a.n = b.n`); n != 2 {
		s.Errorf("two transactions of one lock have written the same number, so that the second has not seen the first: %d pairs, want 2", n)
	}
}

// journal makes a table of the application's that numbers its entries by counting them.
func (s *scene) journal() (table string) {
	s.Helper()
	table = s.env.Dialect.Names().Prefix + "journal"
	s.exec(s.env.DB, `CREATE TABLE `+table+` (n BIGINT NOT NULL)`)
	s.Cleanup(func() { _, _ = s.env.DB.Exec(`DROP TABLE ` + table) })
	return table
}

// enter adds an entry to the journal, in a fenced transaction.
func (s *scene) enter(db *sql.DB, opts *sql.TxOptions, l *rowlock.Lock, table string) error {
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
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO %s VALUES (%d)`, table, n+1)); err != nil {
		return err
	}
	return tx.Commit()
}

// enterUntilDone tries again what has certainly not been done, as ErrBusy says to.
func (s *scene) enterUntilDone(db *sql.DB, opts *sql.TxOptions, l *rowlock.Lock, table string) error {
	for {
		err := s.enter(db, opts, l, table)
		conflict := err != nil && sqlstore.Judge(s.env.Dialect, err).Class == sqlstore.Conflict
		if err == nil || !errors.Is(err, rowlock.ErrBusy) && !conflict {
			return err
		}
	}
}

// waiting reports whether a statement waits for a lock. Of SQLite, which does not say, it waits for a while.
func (s *scene) waiting() bool {
	s.Helper()
	switch s.env.Driver {
	case "pgx":
		return s.number(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`) > 0
	case "mysql":
		if s.is("mysql") {
			return s.number(`SELECT count(*) FROM performance_schema.data_lock_waits`) > 0
		}
		s.atLeast(150 * time.Millisecond) // InnoDB shows what it has shown to who asks again within 100 ms
		return s.number(`SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`) > 0
	}
	s.atLeast(100 * time.Millisecond)
	return true
}

// A transaction that stays open renews nothing that its holder trusts: not even when it fences again, and reads what it has written.
func TestAnOpenTransactionsOwnFenceIsNotTrusted(t *testing.T) {
	const ttl = 4 * time.Second
	eachScene(t, func(s *scene) {
		s.Parallel()
		c := s.client(withTTL(ttl))
		l, tx := s.fenced(c, "k", false, nil)
		began := time.Now()
		s.atLeast(ttl / 2)
		s.ok(l.Fence(s.Context(), tx)) // would end half a TTL after the first
		s.atLeast(ttl/2 - time.Since(began)%(ttl/2))
		s.eventually("the committed lease to expire", func() bool { return leaseLeft(s.T, s.env, "k") <= 0 })
		if trusted := time.Until(l.Deadline()); trusted > ttl/5 {
			s.Errorf("the lease has expired, and its holder trusts it for %s by an expiry that may be rolled back", trusted)
		}
		if err := context.Cause(l.Context()); err != nil {
			s.Errorf("the lock ended within its own fence: %v", err)
		}
		s.ok(tx.Rollback())
		next := s.take(s.client(), "k")
		s.above(next, l)
		<-l.Context().Done()
		s.wantErr(context.Cause(l.Context()), rowlock.ErrLost)
		s.ok(next.Unlock(s.Context()))
	})
}

// NoRenew is kept to: such a lease ends when it said, fenced or not.
func TestAFenceDoesNotRenewWhatIsNotToBeRenewed(t *testing.T) {
	eachScene(t, func(s *scene) {
		l := s.take(s.client(), "k", rowlock.TTL(time.Minute), rowlock.NoRenew())
		s.exec(s.env.DB, `UPDATE {rowlock} SET expires_at = {now} + {second} WHERE {key} = ?`, []byte("k"))
		s.fencedFor(l, 0)
		if left := leaseLeft(s.T, s.env, "k"); left > time.Second {
			s.Errorf("%s remain, of 1 s", left)
		}
	})
}
