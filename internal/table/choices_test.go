package table_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// The statements that take some of many rows. Rows are written as key=state, in the order in which
// they are tried, and each has token 5.

var rowStates = map[string]string{
	"free": freed, "held": "note = note", "expired": expired, "away": moved + ", " + freed,
	"away-expired": moved + ", " + expired, "spent": spent + ", " + freed, "spent-expired": spent + ", " + expired,
	"raised": raised + ", " + freed, "mine": "note = note",
}

// rowsAre leaves these rows, and returns the changes that give each to next.
func rowsAre(t *testing.T, e *testdb.Env, text string) (changes []sqlstore.Change) {
	t.Helper()
	e.Exec(t, "DELETE FROM {rowlock}")
	for _, item := range strings.Fields(text) {
		key, state, _ := strings.Cut(item, "=")
		owner := holder
		if state == "mine" {
			owner = next
		}
		e.Exec(t, "INSERT INTO {rowlock} ({key}, owner, note, token, acquired_at, expires_at, placement)"+
			" VALUES (?, ?, '', 5, "+longAgo+", "+later+", 0)", []byte(key), owner[:])
		e.Exec(t, "UPDATE {rowlock} SET "+rowStates[state]+" WHERE {key} = ?", []byte(key))
		c := toNext(key)
		c.From.Token = 5
		changes = append(changes, c)
	}
	return changes
}

// nextHas are the keys that next has, and their tokens.
func nextHas(t *testing.T, e *testdb.Env) string {
	t.Helper()
	found, err := e.DB.QueryContext(context.Background(),
		e.SQL("SELECT {key}, token FROM {rowlock} WHERE owner = ? ORDER BY {key}"), next[:])
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	var all []string
	for found.Next() {
		var key []byte
		var token lease.Token
		if err := found.Scan(&key, &token); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(string(key), token))
	}
	return strings.Join(all, " ")
}

// chooseAny is ApplyAny. On MySQL it is the statement by itself, because ApplyAny reads the rows
// first.
func chooseAny(
	t *testing.T, e *testdb.Env, on *conn.Session, changes []sqlstore.Change, n int, w *sqlstore.Within,
) error {
	t.Helper()
	if e.Driver != "mysql" {
		_, err := e.Dialect.ApplyAny(t.Context(), on, changes, n, w)
		return err
	}
	section, args := "apply-any", []any{[]byte("batch")}
	if w != nil {
		section, args = "apply-any-within", append(args, []byte(w.Name), w.Generation)
	}
	_, err := on.Exec(t.Context(), e.Dialect.Text(section), append(args, sqlstore.ChangeList(changes), n, n)...)
	return err
}

// eachAny has a choice be without a limit and within one.
func eachAny(t *testing.T, e *testdb.Env, f func(name string, w *sqlstore.Within)) {
	t.Helper()
	limited(t, e)
	f("apply-any", nil)
	f("apply-any-within", &sqlstore.Within{Name: "s", Generation: 3})
}

// choices are how many rows are wanted, and what next has then. MySQL takes a row only if its token
// is the one that was read.
var choices = []struct {
	rows string
	n    int
	era  int64
	want string
	// on is a database that differs, and has there.
	on, there string
}{
	{rows: "a=free", n: 1, want: "a6"},
	{rows: "a=free", n: 1, era: 100, want: "a101"},
	{rows: "a=expired", n: 1, want: "a6"},
	{rows: "b=free a=free", n: 1, want: "b6"},
	{rows: "a=free b=free", n: 1, want: "a6"},
	{rows: "c=free a=held b=expired", n: 2, want: "b6 c6"},
	{rows: "a=held b=free", n: 1, want: "b6"},
	{rows: "a=away b=free", n: 1, want: "b6"},
	{rows: "a=away-expired b=free", n: 1, want: "b6"},
	{rows: "a=spent b=free", n: 1, want: "b6"},
	{rows: "a=spent-expired b=free", n: 1, want: "b6"},
	{rows: "a=raised b=free", n: 1, want: "a7", on: "mysql", there: "b6"},
	{rows: "a=free b=held", n: 2},
	{rows: "a=free b=mine", n: 1, want: "b5", on: "mysql", there: "a6 b5"},
}

// As many rows as are wanted are taken, or none: the first that can be.
func TestEachChoiceDecidesForItself(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		in := map[int64]*conn.Session{0: readySession(t, e, 0), 100: readySession(t, e, 100)}
		eachAny(t, e, func(name string, w *sqlstore.Within) {
			for _, c := range choices {
				changes := rowsAre(t, e, c.rows)
				want := c.want
				if e.Driver == c.on {
					want = c.there
				}
				err := chooseAny(t, e, in[c.era], changes, c.n, w)
				if got := nextHas(t, e); err != nil || got != want {
					t.Errorf("%s, %d of %s in era %d: next has %q, want %q; %v", name, c.n, c.rows, c.era, got, want, err)
				}
			}
		})
	})
}

// A row that another transaction has locked is passed over, and does not count.
func TestEachChoicePassesOverARowThatIsLocked(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		eachAny(t, e, func(name string, w *sqlstore.Within) {
			for n, want := range map[int]string{1: "b6", 2: ""} {
				changes := rowsAre(t, e, "a=free b=free")
				first := begun(t, e)
				do(t, first, e.SQL("UPDATE {rowlock} SET acquired_at = acquired_at + {second} WHERE {key} = ?"), []byte("a"))
				err := chooseAny(t, e, on, changes, n, w)
				do(t, first, "ROLLBACK")
				if got := nextHas(t, e); err != nil || got != want {
					t.Errorf("%s, %d of two: next has %q, want %q; %v", name, n, got, want, err)
				}
			}
		})
	})
}

// What takes nothing locks nothing. On PostgreSQL a row shows the last transaction that has locked
// it.
func TestEachChoiceThatTakesNothingLocksNothing(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		if e.Name != "postgres" {
			t.Skip("there a lock is gone with its transaction")
		}
		on := readySession(t, e, 0)
		all := func(changes []sqlstore.Change) error {
			_, err := e.Dialect.Apply(t.Context(), on, changes, true)
			return err
		}
		for _, other := range []string{"held", "away", "away-expired", "spent", "spent-expired"} {
			calls := map[string]func(changes []sqlstore.Change) error{"apply all": all}
			eachAny(t, e, func(name string, w *sqlstore.Within) {
				calls[name] = func(changes []sqlstore.Change) error { return chooseAny(t, e, on, changes, 2, w) }
			})
			for name, call := range calls {
				changes := rowsAre(t, e, "a=free b="+other)
				err := call(changes)
				var locked int
				failed := e.DB.QueryRowContext(t.Context(), e.SQL("SELECT count(*) FROM {rowlock} WHERE xmax <> 0")).Scan(&locked)
				if err := errors.Join(err, failed); err != nil || locked != 0 || nextHas(t, e) != "" {
					t.Errorf("%s of a free one and one that is %s: %d were locked; %v", name, other, locked, err)
				}
			}
		}
	})
}

// All are taken or none, and a row that another transaction has locked is not.
func TestEachBatchOfAllIsMadeWholeOrNotAtAll(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		for _, locked := range []string{"", "a", "b"} {
			changes := rowsAre(t, e, "a=free b=free")
			first := begun(t, e)
			do(t, first, e.SQL("UPDATE {rowlock} SET acquired_at = acquired_at + {second} WHERE {key} = ?"), []byte(locked))
			_, err := e.Dialect.Apply(t.Context(), on, changesTo(changes), true)
			do(t, first, "ROLLBACK")
			want := ""
			if locked == "" {
				want = "a6 b6"
			}
			if got := nextHas(t, e); err != nil || got != want {
				t.Errorf("%q is locked: next has %q, want %q; %v", locked, got, want, err)
			}
		}
	})
}

// changesTo are changes that name no token.
func changesTo(changes []sqlstore.Change) (out []sqlstore.Change) {
	for _, c := range changes {
		c.From = lease.Lease{Key: c.From.Key}
		out = append(out, c)
	}
	return out
}

// limited leaves the limit s in generation 3, and r in generation 2.
func limited(t *testing.T, e *testdb.Env) {
	t.Helper()
	e.Exec(t, "DELETE FROM {rowlock_limit}")
	for name, generation := range map[string]int{"s": 3, "r": 2} {
		e.Exec(t, "INSERT INTO {rowlock_limit} (name, slots, peak, generation) VALUES (?, 4, 4, ?)", []byte(name), generation)
	}
}
