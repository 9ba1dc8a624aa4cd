package table_test

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// releaseWay frees "k", which is holder's with a token, and says whether another process than
// waiterOf('p') waits for it.
type releaseWay func(t *testing.T, e *testdb.Env, on *conn.Session, token lease.Token) (awaited bool, err error)

// releaseWays are the ways to release one key. On PostgreSQL each statement is run by itself.
func releaseWays(e *testdb.Env) map[string]releaseWay {
	ways := map[string]releaseWay{"release": releaseOne, "in a batch": releaseInBatch}
	switch e.Driver {
	case "pgx":
		for _, section := range []string{"release-piped", "release-relaxed", "release-piped-relaxed"} {
			ways[section] = releaseBy(section)
		}
	case "mysql":
		ways["release-awaited"] = func(t *testing.T, e *testdb.Env, on *conn.Session, token lease.Token) (bool, error) {
			t.Helper()
			on.Heard = true
			defer func() { on.Heard = false }()
			return releaseOne(t, e, on, token)
		}
	}
	return ways
}

func releaseOne(t *testing.T, e *testdb.Env, on *conn.Session, token lease.Token) (bool, error) {
	t.Helper()
	got, err := e.Dialect.Release(t.Context(), on, lease.Lease{Key: "k", Owner: holder, Token: token})
	return got.Awaited, err
}

func releaseInBatch(t *testing.T, e *testdb.Env, on *conn.Session, token lease.Token) (bool, error) {
	t.Helper()
	from := lease.Lease{Key: "k", Owner: holder, Token: token}
	got, err := e.Dialect.Apply(t.Context(), on, []sqlstore.Change{{From: from}}, false)
	return len(got) == 1 && got[0].Awaited, err
}

func releaseBy(section string) releaseWay {
	return func(t *testing.T, e *testdb.Env, on *conn.Session, token lease.Token) (awaited bool, err error) {
		t.Helper()
		process := waiterOf('p')
		err = on.Query(t.Context(), e.Dialect.Text(section), []any{k, holder[:], token, process[:]},
			func(row conn.Columns) error { return row.Scan(&awaited) })
		return awaited, err
	}
}

func releasing(t *testing.T, e *testdb.Env) *conn.Session {
	t.Helper()
	on := readySession(t, e, 0)
	on.Process = waiterOf('p')
	return on
}

// A release frees the row of its owner and token, or of its owner if it names no token, and leaves
// all but the owner and the expiry as it is.
func TestEachReleaseDecidesForItself(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for way, release := range releaseWays(e) {
			on := releasing(t, e)
			for _, c := range []struct {
				set   string
				token lease.Token
				frees bool
			}{
				{"note = note", 5, true},
				{"note = note", 0, true},
				{expired, 5, true},
				{raised, 0, true},
				{raised, 5, false},
				{lowered, 5, false},
				{moved, 5, false},
				{moved, 0, false},
				{taken, 5, false},
				{taken, 0, false},
				{takenExpired, 5, false},
				{freed, 5, false},
			} {
				ready(t, e, c.set)
				e.Exec(t, "UPDATE {rowlock} SET acquired_at = "+longAgo)
				before := rowOf(t, e)
				_, token := owned(t, e)
				_, err := release(t, e, on, c.token)
				owner, now := owned(t, e)
				freed := rowOf(t, e) != before && owner == "" && now == token && !grantedNow(t, e)
				if err != nil || freed != c.frees || !c.frees && rowOf(t, e) != before {
					t.Errorf("%s of token %d after %s: %v; it made of\n%s\n%s", way, c.token, c.set, err, before, rowOf(t, e))
				}
			}
		}
	})
}

// A release says whether another process waits that lives. On MySQL it looks only where a process
// listens, and on SQLite not at all.
func TestEachReleaseSaysWhetherAnotherWaits(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		for way, release := range releaseWays(e) {
			if e.Driver == "mysql" && way != "release-awaited" {
				continue
			}
			on := releasing(t, e)
			waitsFor(t, e, "l", "a@1")
			for tickets, want := range map[string]bool{
				"": false, "a@1": true, "a@?": true, "a@1-": false,
				"p@1": false, "p@?": false, "p@1 a@2-": false, "p@1 a@2": true,
			} {
				ready(t, e, "note = note")
				waitsFor(t, e, "k", tickets)
				if awaited, err := release(t, e, on, 5); err != nil || awaited != want {
					t.Errorf("%s while %q wait: %t, %v", way, tickets, awaited, err)
				}
			}
		}
	})
}

// On MySQL a release hears whether a process listens, whatever it does next.
func TestEachReleaseHearsWhoListens(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Driver != "mysql" {
			t.Skip("it is not asked there")
		}
		on, listener := releasing(t, e), releasing(t, e)
		on.Channel = e.Dialect.Names().Prefix + "heard"
		for n, listens := range []bool{false, true, true, false, false} {
			do(t, listener, "DO RELEASE_ALL_LOCKS()")
			if listens {
				do(t, listener, "DO GET_LOCK(?, 0)", on.Channel+"_door")
			}
			ready(t, e, "note = note")
			if _, err := releaseOne(t, e, on, 5); err != nil || on.Heard != listens {
				t.Errorf("release %d has heard of a listener: %t, want %t; %v", n, on.Heard, listens, err)
			}
		}
	})
}

// A statement that comes after others, or is one of several in a transaction, waits for no row.
func TestEachStatementPassesOverARowThatIsLocked(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		on := releasing(t, e)
		calls := alternates(e, lease.Owner{})
		if e.Driver == "pgx" {
			calls["release-piped"] = []any{k, holder[:], 5, next[:]}
			calls["release-piped-relaxed"] = calls["release-piped"]
		}
		for section, args := range calls {
			set := freed
			if strings.HasPrefix(section, "release") {
				set = "note = note"
			}
			ready(t, e, set)
			before := rowOf(t, e)
			first := begun(t, e)
			do(t, first, e.SQL("UPDATE {rowlock} SET acquired_at = acquired_at + {second}"))
			rows := 0
			err := on.Query(t.Context(), e.Dialect.Text(section), args, func(conn.Columns) error { rows++; return nil })
			do(t, first, "ROLLBACK")
			if err != nil || rows != 0 || rowOf(t, e) != before {
				t.Errorf("%s: %d rows, %v", section, rows, err)
			}
		}
	})
}

// A release that is to be relaxed has its transaction wait for no disk, and no other has.
func TestEachRelaxedReleaseRelaxesItsTransaction(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		if e.Name != "postgres" {
			t.Skip("there is no such setting")
		}
		on := releasing(t, e)
		ways := releaseWays(e)
		ways["in a relaxed batch"] = func(t *testing.T, e *testdb.Env, on *conn.Session, token lease.Token) (bool, error) {
			t.Helper()
			on.Relaxed = true
			defer func() { on.Relaxed = false }()
			return releaseInBatch(t, e, on, token)
		}
		for way, release := range ways {
			ready(t, e, "note = note")
			do(t, on, "BEGIN")
			_, err := release(t, e, on, 5)
			var level string
			failed := on.Conn().QueryRowContext(t.Context(), "SHOW synchronous_commit").Scan(&level)
			do(t, on, "ROLLBACK")
			want := map[bool]string{true: "off", false: "on"}[relaxedWays[way]]
			if err != nil || failed != nil || level != want {
				t.Errorf("%s: synchronous_commit is %q, want %q; %v, %v", way, level, want, err, failed)
			}
		}
	})
}

var relaxedWays = map[string]bool{"release-relaxed": true, "release-piped-relaxed": true, "in a relaxed batch": true}
