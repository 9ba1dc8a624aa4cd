package tenants

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/optimistic"
	"github.com/rowlockdb/rowlock/schema"
)

// What was done once is known on every session of a pool.
func TestARepeatOnAnotherSessionIsARepeat(t *testing.T) {
	eachSchema(t, func(s scene) {
		db := s.pool()
		done := 0
		do := func() {
			s.Helper()
			o, err := once.New(db, s.Env.Dialect, nil)
			s.OK(err)
			defer o.Close()
			_, err = o.Do(s.Context(), once.Request{Key: "k", Fingerprint: once.Fingerprint()},
				func(context.Context, *sql.Tx) ([]byte, error) { done++; return nil, nil })
			s.OK(err)
		}
		do()
		s.astray(db)
		do()
		if done != 1 {
			s.Errorf("it was done %d times", done)
		}
	})
}

// A party that has counted down is counted for every process.
func TestALatchIsOneForEverySession(t *testing.T) {
	each(t, func(s scene) {
		db := s.pool()
		open := func() *latch.Latch {
			s.Helper()
			all, err := latch.New(db, s.Env.Dialect, nil)
			s.OK(err)
			s.Cleanup(func() { _ = all.Close() })
			l, err := all.Open(s.Context(), "l", 1)
			s.OK(err)
			return l
		}
		first := open()
		s.astray(db)
		second := open()
		s.OK(first.CountDown(s.Context(), "p"))
		ctx, cancel := context.WithTimeout(s.Context(), servertest.Patience)
		defer cancel()
		s.OK(second.Await(ctx))
	})
}

// Stores of other kinds exclude a client of the same tables.
func TestOtherStoresOfAPoolLockInTheSameTables(t *testing.T) {
	eachSchema(t, func(s scene) {
		db := s.pool()
		s.Take(s.ClientOn(s.Env.DB), "k")
		s.astray(db)
		store, err := optimistic.New(db, s.Env.Dialect)
		s.OK(err)
		defer store.Close()
		got, err := store.Acquire(s.Context(), []lease.AcquireRequest{{Key: "k", Owner: lease.NewOwner(), TTL: time.Minute}})
		s.OK(err)
		if got[0].Granted {
			s.Error("optimistic: the key is held twice")
		}

		s.astray(db)
		first, err := forupdate.New(s.Env.DB, s.Env.Dialect)
		s.OK(err)
		defer first.Close()
		second, err := forupdate.New(db, s.Env.Dialect)
		s.OK(err)
		defer second.Close()
		ask := func(store *forupdate.Store) bool {
			s.Helper()
			got, err := store.Acquire(s.Context(), []lease.AcquireRequest{{Key: "h", Owner: lease.NewOwner(), TTL: time.Minute}})
			s.OK(err)
			return got[0].Granted
		}
		if !ask(first) || ask(second) {
			s.Error("forupdate: the key is not held once")
		}
	})
}

// Migrate makes and finds the tables where a new connection would, and the doctor looks there.
func TestMigrateAndTheDoctorGoByTheDSN(t *testing.T) {
	eachSchema(t, func(s scene) {
		db := s.pool()
		s.astray(db)
		d := s.Env.New(dialect.Prefix(s.Env.Dialect.Names().Prefix + "m_"))
		s.OK(schema.Migrate(s.Context(), db, d))
		s.Cleanup(func() { s.OK(schema.Uninstall(context.Background(), s.Env.DB, d)) })
		var n int
		s.OK(s.Env.DB.QueryRowContext(s.Context(), `SELECT count(*) FROM information_schema.tables
			WHERE table_name = '`+d.Names().Prefix+`rowlock' AND table_schema = '`+s.tenant+`'`).Scan(&n))
		if n != 0 {
			s.Error("the tables are in the tenant's schema")
		}
		c, err := rowlock.Open(s.Env.Pool(s), d, servertest.Config())
		s.OK(err)
		s.OK(c.Close())

		s.astray(db)
		r, err := doctor.Examine(s.Context(), db, d, &doctor.Options{Only: []string{"schema", "tables"}})
		s.OK(err)
		if r.Worst != doctor.OK {
			s.Errorf("the doctor finds %+v", r.Findings)
		}
	})
}

// A name without a schema is that of the transaction's session, on whatever connection it is asked
// for.
func TestRowsAreThoseThatTheTransactionSees(t *testing.T) {
	eachSchema(t, func(s scene) {
		table := s.Env.Dialect.Names().Prefix + "orders"
		s.Exec(s.Env.DB, `CREATE TABLE `+s.tenant+`.`+table+` (id INT PRIMARY KEY)`)
		s.Cleanup(func() { s.Env.Exec(s, `DROP TABLE `+s.tenant+`.`+table) })
		s.Exec(s.Env.DB, `INSERT INTO `+s.tenant+`.`+table+` VALUES (1)`)
		locker, err := forupdate.NewLocker(s.Env.Pool(s), s.Env.Dialect)
		s.OK(err)
		defer locker.Close()
		rows := forupdate.Rows{Table: table, Key: "id"}
		first, second := s.begin(), s.begin()
		s.OK(locker.TryLockRows(s.Context(), first, rows, 1))
		s.WantErr(locker.TryLockRows(s.Context(), second, rows, 1), rowlock.ErrHeld)
		s.OK(second.Rollback())
		s.OK(first.Rollback())
	})
}
