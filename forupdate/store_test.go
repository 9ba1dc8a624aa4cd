package forupdate_test

import (
	"context"
	"database/sql"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

func TestOneLockTooManyIsRefusedClearlyAndAReleaseMakesRoom(t *testing.T) {
	const n = 3
	onServers(t, func(t *testing.T, e *testdb.Env) {
		s, other := open(t, e.DB, e, forupdate.Connections(n)), open(t, e.DB, e)
		theirs := hold(t, other, "theirs")
		var held []lease.Lease
		for _, key := range []string{"a", "b", "c"} {
			held = append(held, hold(t, s, key))
		}
		request := []lease.AcquireRequest{{Key: "d", Owner: lease.NewOwner(), TTL: ttl}}
		_, err := s.Acquire(t.Context(), request)
		wantIs(t, err, lease.ErrBusy)
		if text := err.Error(); !strings.Contains(text, "3 locks") || !strings.Contains(text, "forupdate.Connections") || !strings.Contains(text, "MaxOpenConns") {
			t.Errorf("%q does not say how many, and what helps", text)
		}
		if a := ask(t, s, "theirs"); a.Granted || a.Holder.Note != "test" {
			t.Errorf("of a key that another holds: %+v", a)
		}
		release(t, s, held[0])
		hold(t, s, "d")
		release(t, other, theirs)
	})
}

func TestAPoolThatIsTooSmallIsRefused(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		db := e.Pool(t)
		db.SetMaxOpenConns(12)
		_, err := forupdate.New(db, e.Dialect, forupdate.Connections(8))
		wantIs(t, err, lease.ErrPool)
		db.SetMaxOpenConns(13)
		s := open(t, db, e, forupdate.Connections(8))
		for _, key := range strings.Split("abcdefgh", "") {
			hold(t, s, key)
		}
		ok(t, db.PingContext(t.Context())) // the application has one
	})
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	for _, o := range []forupdate.Option{forupdate.Connections(0), forupdate.Timeout(0), forupdate.Logger(nil)} {
		_, err := forupdate.New(e.DB, e.Dialect, o)
		wantIs(t, err, lease.ErrConfig)
		_, err = forupdate.NewLocker(e.DB, e.Dialect, o)
		wantIs(t, err, lease.ErrConfig)
	}
	_, err := forupdate.New(nil, e.Dialect)
	wantIs(t, err, lease.ErrConfig)
	_, err = forupdate.NewLocker(e.DB, nil)
	wantIs(t, err, lease.ErrConfig)
}

func TestAPoolerIsRefused(t *testing.T) {
	e := onPostgres(t)
	b := e.Behind(t)
	_, err := forupdate.New(b.DB, b.Dialect)
	wantIs(t, err, lease.ErrUnsupported)
}

func onPostgres(t *testing.T) *testdb.Env {
	t.Helper()
	for _, k := range testdb.Kinds {
		if k.Name == "postgres" {
			return k.Open(t)
		}
	}
	t.Fatal("no postgres among the kinds")
	return nil
}

func TestALeaseAndATransactionRefuseEachOthersKeys(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		leases, err := rowlock.Open(e.DB, e.Dialect, &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}})
		ok(t, err)
		defer leases.Close()
		transactions, _ := client(t, e, ttl)
		for _, turn := range []struct {
			key           string
			first, second *rowlock.Client
		}{{"a", leases, transactions}, {"b", transactions, leases}} {
			l, err := turn.first.TryLock(t.Context(), turn.key)
			ok(t, err)
			for range 2 { // while it is held, and afterwards
				_, err = turn.second.TryLock(t.Context(), turn.key)
				wantIs(t, err, lease.ErrMoved, lease.ErrUnsupported)
				_ = l.Unlock(t.Context())
			}
		}
	})
}

func TestTokensGrowAcrossCrashesAndSweeps(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		s := open(t, e.DB, e)
		last := lease.Token(0)
		for round := range 6 {
			l := hold(t, s, "k")
			if l.Token <= last {
				t.Fatalf("token %d came after token %d", l.Token, last)
			}
			last = l.Token
			if round%2 == 0 {
				kill(t, e, s, "k")
				continue
			}
			release(t, s, l)
			eventually(t, "the rows to be swept", func() bool {
				_, err := s.Sweep(t.Context(), lease.SweepOptions{})
				ok(t, err)
				return count(t, e, "rowlock_hold") == 0
			})
		}
	})
}

func TestARenewalFindsThatItsTransactionIsGone(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		s := open(t, e.DB, e)
		l := hold(t, s, "k")
		kill(t, e, s, "k")
		if got := renew(t, s, l, ttl); got != lease.Lost {
			t.Errorf("the renewal of a lock whose session has ended: %s", got)
		}
	})
}

func TestASweepLeavesWhatIsLockedOrYoung(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		s := open(t, e.DB, e)
		l, err := s.Locker()
		ok(t, err)
		tx := begin(t, e)
		ok(t, l.Lock(t.Context(), tx, "locked")) // has no row but the one that is locked
		release(t, s, hold(t, s, "released"))
		_, err = s.Sweep(t.Context(), lease.SweepOptions{Retention: time.Hour})
		ok(t, err)
		if n := count(t, e, "rowlock_hold"); n != 2 {
			t.Errorf("%d rows are left of 2 that are young", n)
		}
		e.Exec(t, `UPDATE {rowlock_hold} SET made_at = {now} - {second} WHERE {key} = ?`, []byte("released"))
		e.Exec(t, `UPDATE {rowlock} SET expires_at = {now} - {second}`)
		_, err = s.Sweep(t.Context(), lease.SweepOptions{})
		ok(t, err)
		if n := count(t, e, "rowlock_hold"); n != 1 {
			t.Errorf("%d rows are left, want the one that is locked", n)
		}
	})
}

// A program with only a Locker need not keep a row for every key there ever was.
func TestALockerSweepsWhatItHasMade(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		l := newLocker(t, e)
		sweep := func(retention time.Duration) int64 {
			t.Helper()
			n, err := l.Sweep(t.Context(), lease.SweepOptions{Retention: retention, Batch: 2})
			ok(t, err)
			return n
		}
		tx := begin(t, e)
		ok(t, l.Lock(t.Context(), tx, "a", "b", "c", "d", "e"))
		ok(t, tx.Commit())
		if e.Name == "sqlite" {
			if n := sweep(0); n != 0 {
				t.Errorf("%d rows were removed of none", n)
			}
			return
		}
		tx = begin(t, e)
		ok(t, l.Lock(t.Context(), tx, "c"))
		if n := sweep(time.Hour); n != 0 {
			t.Errorf("%d rows were removed that are young", n)
		}
		if n := sweep(0); n != 4 || count(t, e, "rowlock_hold") != 1 {
			t.Errorf("%d rows were removed of 4 that are not locked, %d are left", n, count(t, e, "rowlock_hold"))
		}
		ok(t, l.Lock(t.Context(), tx, "a", "e")) // made again
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Sweep(ended, lease.SweepOptions{})
		wantIs(t, err, context.Canceled)
		ok(t, tx.Commit())
	})
}

func TestALockersWarningsAreLogged(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	e.Exec(t, `PRAGMA journal_mode = DELETE`)
	var text strings.Builder
	source, err := url.Parse(e.Source)
	ok(t, err)
	source.RawQuery = "_pragma=busy_timeout(5000)"
	db, err := sql.Open(e.Driver, source.String())
	ok(t, err)
	defer db.Close()
	l, err := forupdate.NewLocker(db, e.Dialect, forupdate.Logger(slog.New(slog.NewTextHandler(&text, nil))))
	ok(t, err)
	ok(t, l.Close())
	if !strings.Contains(text.String(), "journal_mode") {
		t.Errorf("logged %q, want what is said of the journal", text.String())
	}
}

func count(tb testing.TB, e *testdb.Env, table string) (n int) {
	tb.Helper()
	ok(tb, e.DB.QueryRowContext(tb.Context(), `SELECT count(*) FROM `+e.Table(table)).Scan(&n))
	return n
}

func TestAStoreThatIsClosedHoldsNothing(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		s, other := open(t, e.DB, e), open(t, e.DB, e)
		l := hold(t, s, "k")
		ok(t, s.Close())
		ok(t, s.Close())
		eventually(t, "the key of a closed store", func() bool { return ask(t, other, "k").Granted })
		_, err := s.Acquire(t.Context(), []lease.AcquireRequest{{Key: "k", Owner: lease.NewOwner(), TTL: ttl}})
		wantIs(t, err, lease.ErrClosed)
		_, err = s.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: ttl}})
		wantIs(t, err, lease.ErrClosed)
		_, err = s.Release(t.Context(), []lease.Lease{l})
		wantIs(t, err, lease.ErrClosed)
		_, err = s.Inspect(t.Context(), lease.Filter{})
		wantIs(t, err, lease.ErrClosed)
	})
}

// What a database, a role or a DSN makes the default is not what a lock rests on.
func TestAStoreAndALockerWorkUnderEveryDefaultIsolation(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		for _, level := range []string{"read committed", "repeatable read", "serializable"} {
			strict := *e
			sep := map[bool]string{true: "&", false: "?"}[strings.Contains(e.Source, "?")]
			if e.Driver == "mysql" {
				strict.Source += sep + map[string]string{"mariadb": "tx_isolation", "mysql": "transaction_isolation"}[e.Name] + "=%27" + strings.NewReplacer("read committed", "READ-COMMITTED", "repeatable read", "REPEATABLE-READ", "serializable", "SERIALIZABLE").Replace(level) + "%27"
			} else {
				strict.Source += sep + "default_transaction_isolation=" + strings.ReplaceAll(level, " ", "%20")
			}
			strict.DB = strict.Pool(t)
			a, b := open(t, strict.DB, &strict), open(t, strict.DB, &strict)
			locks, err := a.Locker()
			ok(t, err)
			for range 3 {
				l := hold(t, a, level)
				if ask(t, b, level).Granted {
					t.Errorf("%s: granted twice", level)
				}
				if got := renew(t, a, l, ttl); got != lease.Extended {
					t.Errorf("%s: %s", level, got)
				}
				release(t, a, l)
				release(t, b, hold(t, b, level))
				tx := begin(t, &strict)
				ok(t, locks.Lock(t.Context(), tx, level, "another"))
				ok(t, tx.Commit())
			}
		}
	})
}

// A read may show what a failover then forgets. So an owner that asks again is told of its lock
// after a write that names its owner and token, which shows in the expiry.
func TestAnOwnerThatAsksAgainIsToldAfterAWrite(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		s, other := open(t, e.DB, e), open(t, e.DB, e)
		l := hold(t, s, "k")
		for i, by := range []*forupdate.Store{s, other} { // also one that does not have the connection
			least := time.Duration(i+1) * ttl
			r := lease.AcquireRequest{Key: "k", Owner: l.Owner, TTL: least + ttl}
			a, err := by.Acquire(t.Context(), []lease.AcquireRequest{r})
			ok(t, err)
			if !a[0].Granted || a[0].Token != l.Token {
				t.Errorf("%+v, want token %d", a[0], l.Token)
			}
			rows, err := s.Inspect(t.Context(), lease.Filter{Keys: []string{"k"}})
			ok(t, err)
			if len(rows) != 1 || rows[0].Remaining <= least {
				t.Errorf("not renewed: %+v", rows)
			}
			if got := renew(t, s, l, ttl); got != lease.Extended {
				t.Errorf("the lock is %s", got)
			}
		}
		release(t, s, l)
	})
}
