package schema_test

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/schema"
)

// sends runs statements of the session, one of which may be the fence of a lock.
func (s session) sends(statements ...any) error {
	s.Helper()
	for _, statement := range statements {
		var err error
		switch to := statement.(type) {
		case *rowlock.Lock:
			err = to.Fence(s.Context(), s.Conn)
		case string:
			_, err = s.ExecContext(s.Context(), to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// everything is protected by one lock, so that transactions that are prepared keep no row from
// those after them.
var everything = schema.Protection{Table: "account", Key: "all"}

const (
	first  = `UPDATE account SET balance = 5 WHERE id = 1`
	second = `UPDATE account SET balance = 6 WHERE id = 2`
)

// What a prepared transaction has fenced is its own: the trigger looks before it is prepared, and
// no other transaction writes under it, neither before it is committed nor after.
func TestAPreparedTransactionIsCheckedBeforeItIsPrepared(t *testing.T) {
	onBoth(t, func(v vault) {
		v.protect(everything)
		l, s := v.lock("all"), v.session()
		name := "'" + freshName() + "'"
		v.refused("unfenced", s.sends(`BEGIN`, first))
		v.passes("prepared", s.sends(`ROLLBACK`, `BEGIN`, l, first, `PREPARE TRANSACTION `+name))
		v.refused("the next of the session", s.sends(`BEGIN`, second))
		v.passes("rolled back", s.sends(`ROLLBACK`))
		v.refused("another session", v.in(nil, second))
		v.passes("committed by another session", must(v.db.ExecContext(t.Context(), `COMMIT PREPARED `+name)))
		if n := one[int](v, v.db, `SELECT balance FROM account WHERE id = 1`); n != 5 {
			v.Errorf("the balance is %d, want 5", n)
		}
		v.refused("after it", s.sends(`BEGIN`, second))
		v.passes("rolled back", s.sends(`ROLLBACK`))
		v.passes("under a fence", v.in([]*rowlock.Lock{l}, second))
	})
}

// An XA transaction is as one that begins with BEGIN: its mark is committed by XA COMMIT, unless
// UnlockTx has left the lock in it.
func TestAnXATransactionIsCheckedBeforeItIsPrepared(t *testing.T) {
	onTriggers(t, func(v vault) {
		v.protect(everything)
		s := v.session()
		name := "'" + freshName() + "'"
		v.refused("unfenced", s.sends(`XA START `+name, first))
		v.passes("rolled back", s.sends(`XA END `+name, `XA ROLLBACK `+name))
		l := v.lock("all")
		v.passes("prepared", s.sends(`XA START `+name, l, first, `XA END `+name, `XA PREPARE `+name))
		v.refused("another session", v.session().plain(second))
		v.passes("committed", s.sends(`XA COMMIT `+name))
		if n := one[int](v, v.db, `SELECT balance FROM account WHERE id = 1`); n != 5 {
			v.Errorf("the balance is %d, want 5", n)
		}
		v.passes("which docs/protect.md says", s.plain(second))
		v.passes("Unlock", l.Unlock(v.Context()))
		v.refused("after Unlock", s.plain(second))
	})
}

// What the origin has checked is applied, without a fence: the subscriber's own writers need one.
func TestASubscriberAppliesWhatTheOriginHasChecked(t *testing.T) {
	t.Parallel()
	dsnOf(t, onPostgres) // skips
	lone := standby.StartLone(t, "-c", "wal_level=logical")
	for name, create := range map[string]string{"plain": guarded, "partitioned": partitioned} {
		in := func(role string) vault {
			exec(t, lone.DB, `CREATE DATABASE `+name+role)
			s := onPostgres
			s.fresh = func(testing.TB, server) (driver, dsn string) {
				return "pgx", strings.Replace(lone.Source, "/postgres?", "/"+name+role+"?", 1)
			}
			return openVaultOn(t, s, create)
		}
		origin, subscriber := in("_origin"), in("_subscriber")
		exec(t, origin.db, `CREATE PUBLICATION accounts FOR TABLE account`)
		exec(t, origin.db, `SELECT pg_create_logical_replication_slot('`+name+`', 'pgoutput')`)
		exec(t, subscriber.db, `CREATE SUBSCRIPTION `+name+` CONNECTION '`+origin.dsn+`' PUBLICATION accounts
			WITH (create_slot = false, copy_data = false)`)
		t.Cleanup(func() { exec(t, subscriber.db, `DROP SUBSCRIPTION `+name) })
		for _, v := range []vault{origin, subscriber} {
			v.protect(accounts())
			v.refused(name+", unfenced", v.in(nil, first))
		}
		origin.passes(name+", fenced", origin.in([]*rowlock.Lock{origin.lock("account/1")}, first))
		servertest.Eventually(t, "the subscriber to apply it", func() bool {
			return one[int](t, subscriber.db, `SELECT balance FROM account WHERE id = 1`) == 5
		})
		subscriber.refused(name+", its own, afterwards", subscriber.in(nil, first))
	}
}
