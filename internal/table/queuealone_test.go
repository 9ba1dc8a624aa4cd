package table_test

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// On MySQL a claim and a pass are several statements, of which each but the first comes after a
// read. Here each runs alone.
func onMySQL(t *testing.T, f func(t *testing.T, e *testdb.Env)) {
	t.Helper()
	onServers(t, func(t *testing.T, e *testdb.Env) {
		if e.Driver != "mysql" {
			t.Skip("there it is one statement")
		}
		f(t, e)
	})
}

func TestEachPassAsksForTheFirstThatWaits(t *testing.T) {
	onMySQL(t, func(t *testing.T, e *testdb.Env) {
		waitsFor(t, e, "l", "a@1")
		for tickets, want := range map[string]string{
			"": "", "a@1": "a", "a@1-": "", "a@?": "", "h@1": "", "h@1 a@2": "a", "a@2 b@1": "b", "a@1 b@2": "a",
			"b@1 a@1": "b", "a@1- b@2": "b",
		} {
			waitsFor(t, e, "k", tickets)
			got := told(e, t, &onGroup{section: "queue-head", args: fixed(k, holder[:])})
			if strings.TrimRight(got, "\x00") != want {
				t.Errorf("of %q it is %q, want %q", tickets, got, want)
			}
		}
	})
}

func TestEachPassUsesUpTheTicketThatWasRead(t *testing.T) {
	onMySQL(t, func(t *testing.T, e *testdb.Env) {
		in := map[lease.Token]*conn.Session{0: readySession(t, e, 0), 100: readySession(t, e, 100)}
		a := waiterOf('a')
		for _, c := range []struct {
			set, before string
			token, era  lease.Token
			want        lease.Token
			after       string
		}{
			{"note = note", "a@1", 5, 0, 6, "a@?-"},
			{"note = note", "a@1", 5, 100, 101, "a@?-"},
			{"note = note", "a@1", 0, 0, 6, "a@?-"},
			{"note = note", "a@2 b@1", 5, 0, 6, "a@?- b@1"},
			{expired, "a@1", 5, 0, 6, "a@?-"},
			{"note = note", "a@1-", 5, 0, 0, "a@1-"},
			{"note = note", "a@?", 5, 0, 0, "a@?"},
			{"note = note", "b@1", 5, 0, 0, "b@1"},
			{taken, "a@1", 5, 0, 0, "a@1"},
			{takenExpired, "a@1", 0, 0, 0, "a@1"},
			{freed, "a@1", 5, 0, 0, "a@1"},
			{moved, "a@1", 5, 0, 0, "a@1"},
			{raised, "a@1", 5, 0, 0, "a@1"},
			{spent, "a@1", 0, 0, 0, "a@1"},
		} {
			ready(t, e, c.set)
			waitsFor(t, e, "k", c.before)
			before := rowOf(t, e)
			_, err := in[c.era].Change(t.Context(), e.Dialect.Text("pass"), a[:], k, holder[:], c.token)
			owner, token := owned(t, e)
			if passed := owner == string(a[:]); err != nil || passed != (c.want > 0) || passed && token != c.want {
				t.Errorf("%+v: the row has owner %x and token %d; %v", c, owner, token, err)
			}
			if line := inLine(t, e); line != c.after || c.want == 0 && rowOf(t, e) != before {
				t.Errorf("%+v: %q wait; it made of\n%s\n%s", c, line, before, rowOf(t, e))
			}
		}
	})
}

func TestEachClaimByATicketDecidesForItself(t *testing.T) {
	onMySQL(t, func(t *testing.T, e *testdb.Env) {
		in := map[lease.Token]*conn.Session{0: readySession(t, e, 0), 100: readySession(t, e, 100)}
		for before, after := range map[string]string{
			"n@1": "n@?-", "n@2 a@1": "n@?- a@1", "n@1-": "", "n@?": "", "a@1": "", "": "",
		} {
			for _, c := range grantStates {
				if c.set == "" {
					continue
				}
				c.prepare(t, e)
				waitsFor(t, e, "k", before)
				row, want, line := rowOf(t, e), c.want, after
				if after == "" || want == 0 {
					want, line = 0, sorted(before)
				}
				_, err := in[c.era].Change(t.Context(), e.Dialect.Text("claim-ticket"), k, next[:], next[:], "n", hour)
				owner, token := owned(t, e)
				mine := owner == string(next[:])
				if err != nil || mine != (want > 0) || mine && token != want || !mine && rowOf(t, e) != row {
					t.Errorf("claimed while %q wait, %+v: the row has owner %x and token %d; %v",
						before, c, owner, token, err)
				}
				if left := inLine(t, e); left != line {
					t.Errorf("claimed while %q wait, %+v: %q wait", before, c, left)
				}
			}
		}
	})
}

func TestEachClaimByATicketPassesOverARowThatIsLocked(t *testing.T) {
	onMySQL(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		ready(t, e, expired)
		waitsFor(t, e, "k", "n@1")
		first := begun(t, e)
		do(t, first, e.SQL("UPDATE {rowlock} SET acquired_at = acquired_at + {second}"))
		n, err := on.Change(t.Context(), e.Dialect.Text("claim-ticket"), k, next[:], next[:], "n", hour)
		do(t, first, "ROLLBACK")
		if line := inLine(t, e); err != nil || n != 0 || line != "n@1" {
			t.Errorf("%d rows, %v; %q wait", n, err, line)
		}
	})
}

// A row that a claim makes is free, and its token is the floor. A row that is there is not made
// again, and a client that has locked it is not waited for.
func TestEachClaimMakesAFreeRow(t *testing.T) {
	onMySQL(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		claim := func() (int64, error) {
			return on.Change(t.Context(), e.Dialect.Text("claim-make"), k, lease.Bucket("k"), k)
		}
		for floor, want := range map[lease.Token]lease.Token{0: 0, 7: 7, lease.MaxToken - 2: lease.MaxToken - 2, lease.MaxToken - 1: -1} {
			(&grantState{floor: floor}).prepare(t, e)
			n, err := claim()
			owner, token := owned(t, e)
			if made := n == 1; err != nil || made != (want >= 0) || made && (owner != "" || token != want) {
				t.Errorf("above %d: %d rows, %v; owner %x and token %d", floor, n, err, owner, token)
			}
		}
		(&grantState{set: "note = note"}).prepare(t, e)
		first := begun(t, e)
		do(t, first, e.SQL("UPDATE {rowlock} SET acquired_at = acquired_at + {second}"))
		n, err := claim()
		do(t, first, "ROLLBACK")
		if err != nil || n != 0 {
			t.Errorf("a row that is there: %d rows, %v", n, err)
		}
	})
}

// A row whose floor is being raised is made at the floor that it gets.
func TestEachClaimThatMakesARowWaitsForItsFloor(t *testing.T) {
	onMySQL(t, func(t *testing.T, e *testdb.Env) {
		err := whileTheFloorRises(t, e, "claim-make", k, lease.Bucket("k"), k)
		if _, token := owned(t, e); err != nil || token != 20 {
			t.Errorf("its token is %d, want 20; %v", token, err)
		}
	})
}
