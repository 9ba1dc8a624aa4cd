package table_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// On MySQL and MariaDB a session that listens sleeps, and KILL QUERY wakes it.
func eachKilling(t *testing.T, f func(t *testing.T, e *testdb.Env)) {
	t.Helper()
	for _, kind := range []string{"mariadb", "mysql"} {
		t.Run(kind, func(t *testing.T) { f(t, on(t, kind)) })
	}
}

// address is the user lock of the first session that hears what is announced to all.
func address(t *testing.T, e *testdb.Env) string {
	t.Helper()
	var instance string
	err := e.DB.QueryRowContext(t.Context(), e.SQL(`SELECT value FROM {rowlock_meta} WHERE name = 'instance'`)).Scan(&instance)
	wantIs(t, err, nil)
	sum := sha256.Sum256([]byte(instance + "\x00" + e.Dialect.Names().Prefix))
	return "rowlock_" + hex.EncodeToString(sum[:16]) + "_0"
}

// listensAs waits until a session has the user lock, or none.
func listensAs(t *testing.T, e *testdb.Env, name string, want bool) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		var listens bool
		wantIs(t, e.DB.QueryRowContext(t.Context(), `SELECT IS_USED_LOCK(?) IS NOT NULL`, name).Scan(&listens), nil)
		if listens == want {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("a session listens: %t", listens)
		}
	}
}

// killListener ends the session that has a lock. The one that was killed before may still have it,
// and then end before the server has found it (error 1094).
func killListener(t *testing.T, e *testdb.Env, name string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		listensAs(t, e, name, true)
		_, err := e.DB.ExecContext(t.Context(), `KILL CONNECTION IS_USED_LOCK('`+name+`')`)
		if err == nil {
			return
		}
		if time.Since(began) > patience {
			t.Fatal(err)
		}
	}
}

func TestASleepingListenerWhoseConnectionIsKilledListensAgain(t *testing.T) {
	eachKilling(t, func(t *testing.T, e *testdb.Env) {
		s := openOn(t, e, e.Dialect, true)
		ear := listen(t, s)
		for range 2 {
			killListener(t, e, address(t, e))
			ear.wants("", patience)
			ear.hears(s)
		}
	})
}

// A KILL QUERY that came late would end the statement of another user of the connection.
func TestASleepingListenersConnectionDoesNotGoBackToThePool(t *testing.T) {
	eachKilling(t, func(t *testing.T, e *testdb.Env) {
		pool := e.Pool(t)
		s, _, err := table.Open(t.Context(), pool, e.Dialect, table.Options{Connections: 2, Timeout: 5 * time.Second, Hints: true})
		wantIs(t, err, nil)
		t.Cleanup(func() { _ = s.Close() })
		ear := listen(t, s)
		ear.end()
		<-ear.done
		if stats := pool.Stats(); stats.OpenConnections != 2 {
			t.Errorf("%d connections are open for two pinned connections: %+v", stats.OpenConnections, stats)
		}
		listensAs(t, e, address(t, e), false)
	})
}

// The sessions pass the announcement on, so that its price for the releaser does not grow.
func TestAnAnnouncementReachesManyListenersInFewStatements(t *testing.T) {
	eachKilling(t, func(t *testing.T, e *testdb.Env) {
		r := hinting(t, e)
		s := openOn(t, e, e.Dialect, true)
		var ears []*ear
		for range 24 {
			ears = append(ears, listen(t, s))
		}
		// Each session finds those below it within a beat of 4 s, and is deaf for a moment then.
		deaf, kill := ears, "KILL QUERY"
		for began := time.Now(); len(deaf) > 0; time.Sleep(100 * time.Millisecond) {
			r.log.Reset()
			_ = r.store.Announce(t.Context(), []string{"key"}) // one that is late wakes no session
			if n := r.log.Count(sends(kill)); n > 4 {
				t.Fatalf("%d sessions were woken", n)
			}
			// Beside its own catching up, which it does by itself.
			deaf = slices.DeleteFunc(deaf, func(e *ear) bool { return len(e.heard) > 1 })
			if time.Since(began) > 3*patience {
				t.Fatalf("%d of 24 listeners heard nothing", len(deaf))
			}
		}
	})
}

// hinting is a rig whose store sends messages through the faults.
func hinting(t *testing.T, e *testdb.Env) *rig {
	t.Helper()
	r := newRig(t, e, 0, 2)
	r.store = r.open(t, r.pool, table.Options{Connections: 2, Timeout: 5 * time.Second, Hints: true})
	return r
}

// A KILL on a server that is busy can hang, for 2 s where MariaDB's session is in SLEEP.
func TestNoStatementOfALockWaitsForAMessage(t *testing.T) {
	eachKilling(t, func(t *testing.T, e *testdb.Env) {
		r := hinting(t, e)
		_ = listen(t, openOn(t, e, e.Dialect, true))
		gate := faultdb.NewGate()
		defer gate.Release()
		r.faults.Set(faultdb.OnFunc(sends("KILL QUERY"), faultdb.Always(faultdb.Block(gate))))
		sent := make(chan error, 1)
		go func() { sent <- r.store.Announce(t.Context(), []string{"key"}) }()
		<-gate.Arrived()
		for range 20 { // on each pinned connection
			release(t, r.store, hold(t, r.store, "key"))
		}
		if err := <-sent; err == nil {
			t.Error("a message that was not sent in time is reported as sent")
		}
		r.faults.Set(nil)
		announce(t, r.store, "key")
	})
}

// A release reads the registrations of waiters, and locks none.
func TestAReleaseDoesNotWaitForARegistration(t *testing.T) {
	eachKilling(t, func(t *testing.T, e *testdb.Env) {
		s := openOn(t, e, e.Dialect, true)
		waiter := openOn(t, e, e.Dialect, true)
		_ = listen(t, waiter) // a release asks who waits only while a process listens
		wantIs(t, waiter.Register(t.Context(), lease.NewOwner(), "", []string{"key"}, ttl), nil)
		l := hold(t, s, "key")
		tx, err := e.DB.BeginTx(t.Context(), nil)
		wantIs(t, err, nil)
		defer func() { _ = tx.Rollback() }()
		var n int
		wantIs(t, tx.QueryRowContext(t.Context(), e.SQL(
			`SELECT count(*) FROM (SELECT 1 AS one FROM {rowlock_queue} FOR UPDATE) AS d`)).Scan(&n), nil)
		released, err := s.Release(t.Context(), []lease.Lease{l})
		wantIs(t, err, nil)
		if n != 1 || !released[0].Awaited || released[0].Gone {
			t.Errorf("with %d registrations that are locked: %+v", n, released[0])
		}
	})
}

// All listeners wait for one lock. If the session that has it ends, another takes its place.
func TestListenersHearWhenTheDoorsSessionHasEnded(t *testing.T) {
	eachKilling(t, func(t *testing.T, e *testdb.Env) {
		s := openOn(t, e, e.Dialect, true)
		door := strings.TrimSuffix(address(t, e), "_0") + "_door"
		ears := []*ear{listen(t, s), listen(t, s), listen(t, s)}
		for range 3 {
			killListener(t, e, door)
		}
		listensAs(t, e, door, true)
		for _, ear := range ears {
			for len(ear.heard) > 0 {
				<-ear.heard
			}
			began := time.Now()
			for len(ear.heard) < 2 { // one is its own
				_ = s.Announce(t.Context(), []string{"key"}) // or the next
				time.Sleep(20 * time.Millisecond)
				if time.Since(began) > 2*patience {
					t.Fatal("a listener hears nothing")
				}
			}
		}
	})
}

func sends(text string) func(faultdb.Op) bool {
	return func(op faultdb.Op) bool { return op.Executes() && strings.HasPrefix(op.Query, text) }
}

// A user may end the statements of the same user only. The others poll, and the refusal is told
// once.
func TestAUserWhoMayNotWakeOthersStops(t *testing.T) {
	eachKilling(t, func(t *testing.T, e *testdb.Env) {
		low := e.Dialect.Names().Prefix + "low"
		e.Exec(t, `CREATE USER `+low)
		defer e.Exec(t, `DROP USER `+low)
		cfg, err := mysql.ParseDSN(e.Source)
		wantIs(t, err, nil)
		e.Exec(t, `GRANT ALL ON `+cfg.DBName+`.* TO `+low)
		cfg.User, cfg.Passwd = low, ""
		other := *e
		other.Source = cfg.FormatDSN()
		_ = listen(t, openOn(t, e, e.Dialect, true))
		r := hinting(t, &other)
		wantIs(t, r.store.Announce(t.Context(), []string{"key"}), lease.ErrUnsupported)
		if n := r.log.Count(sends("KILL QUERY")); n != 1 {
			t.Fatalf("the user has tried to wake %d sessions", n)
		}
		announce(t, r.store, "key")
		wantIs(t, r.store.Wake(t.Context(), lease.NewOwner(), []string{"key"}), nil)
	})
}

// The caller of a release waits for its message. Where no connection is to be had, the next ones
// send none for a while.
func TestAFullPoolDelaysOneMessage(t *testing.T) {
	eachKilling(t, func(t *testing.T, e *testdb.Env) {
		pool := e.Pool(t)
		pool.SetMaxOpenConns(6)
		s := openIn(t, pool, e, e.Dialect, true)
		for range 4 { // the application's; the pinned connections have two
			c, err := pool.Conn(t.Context())
			wantIs(t, err, nil)
			defer func() { _ = c.Close() }()
		}
		before := pool.Stats().WaitCount
		for range 4 {
			_ = s.Announce(t.Context(), []string{"key"})
		}
		if n := pool.Stats().WaitCount - before; n > 1 {
			t.Errorf("%d messages waited for a connection", n)
		}
	})
}

// A process that finds no name polls for a while. It does not take the server for one without
// messages, and goes on sending its own.
func TestAListenerWithoutANameTriesAgain(t *testing.T) {
	eachKilling(t, func(t *testing.T, e *testdb.Env) {
		all, err := e.DB.Conn(t.Context())
		wantIs(t, err, nil)
		defer func() { _ = all.Close() }()
		for i := range 84 {
			var n int
			name := strings.TrimSuffix(address(t, e), "0") + strconv.Itoa(i)
			wantIs(t, all.QueryRowContext(t.Context(), `SELECT GET_LOCK(?, 0)`, name).Scan(&n), nil)
		}
		defer func() { _, _ = all.ExecContext(context.Background(), `DO RELEASE_ALL_LOCKS()`) }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = openOn(t, e, e.Dialect, true).Listen(ctx, func(string) { t.Error("it listens") })
		wantIs(t, err, context.DeadlineExceeded)
	})
}
