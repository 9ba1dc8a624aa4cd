package table_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// alternates are statements that give the row of "k" to next, if it is free and has token 5. Each
// is the second of two in its call, or comes after a read. Where from is an owner, it is a batch to
// which he hands the row over.
func alternates(e *testdb.Env, from lease.Owner) map[string][]any {
	c := toNext("k")
	c.From.Token, c.From.Owner = 5, from
	list := sqlstore.ChangeList([]sqlstore.Change{c})
	switch e.Driver {
	case "pgx":
		return map[string][]any{"acquire-piped": {k, next[:], "n", hour}}
	case "mysql":
		return map[string][]any{
			"acquire-expired": {next[:], "n", hour, k},
			"apply":           {[]byte("batch"), list},
			"apply-all":       {list, 1},
		}
	}
	return nil
}

// A row is given to next if it is free, and by some statements if it has expired, above its token
// and the era.
func TestEachStatementThatGrantsDecidesForItself(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		in := map[lease.Token]*conn.Session{0: readySession(t, e, 0), 100: readySession(t, e, 100)}
		for section, args := range alternates(e, lease.Owner{}) {
			for _, c := range grantStates {
				if c.set == "" {
					continue
				}
				c.prepare(t, e)
				before, want := rowOf(t, e), c.want
				if section == "acquire-piped" && strings.Contains(c.set, expired) {
					want = 0
				}
				err := in[c.era].Query(t.Context(), e.Dialect.Text(section), args,
					func(conn.Columns) error { return nil })
				owner, token := owned(t, e)
				switch {
				case err != nil:
					t.Errorf("%s of %+v: %v", section, c, err)
				case want == 0 && rowOf(t, e) != before:
					t.Errorf("%s of %+v made of\n%s\n%s", section, c, before, rowOf(t, e))
				case want > 0 && (owner != string(next[:]) || token != want || !grantedNow(t, e)):
					t.Errorf("%s of %+v: the row has owner %x and token %d; granted now: %t",
						section, c, owner, token, grantedNow(t, e))
				}
			}
		}
	})
}

// On MySQL a batch takes a row as it was read.
func TestEachBatchTakesRowsAsTheyWereRead(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		if e.Driver != "mysql" {
			t.Skip("a batch reads its rows itself")
		}
		on := readySession(t, e, 0)
		for section, args := range alternates(e, lease.Owner{}) {
			if section == "acquire-expired" {
				continue
			}
			for _, set := range []string{raised + ", " + freed, lowered + ", " + freed, raised + ", " + expired} {
				ready(t, e, set)
				before := rowOf(t, e)
				n, err := on.Change(t.Context(), e.Dialect.Text(section), args...)
				if err != nil || n != 0 || rowOf(t, e) != before {
					t.Errorf("%s after %s: %d rows, %v", section, set, n, err)
				}
			}
		}
	})
}

// On MySQL a batch hands over what the row names, whether or not that has expired.
func TestEachBatchHandsOverWhatIsTheHolders(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		if e.Driver != "mysql" {
			t.Skip("a batch reads its rows itself")
		}
		on := readySession(t, e, 0)
		for section, args := range alternates(e, holder) {
			if section == "acquire-expired" {
				continue
			}
			for set, want := range map[string]bool{
				"note = note": true, expired: true, taken: false, takenExpired: false, freed: false, moved: false, raised: false,
			} {
				ready(t, e, set)
				before := rowOf(t, e)
				_, err := on.Change(t.Context(), e.Dialect.Text(section), args...)
				if owner, _ := owned(t, e); err != nil || (owner == string(next[:])) != want || !want && rowOf(t, e) != before {
					t.Errorf("%s after %s: the row is %x's; %v", section, set, owner, err)
				}
			}
		}
	})
}

// A row that is there is not made again, and a client that has locked it is not waited for.
func TestEachRowIsMadeOnce(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		insert := []any{k, next[:], "n", hour, lease.Bucket("k")}
		ways := map[string]func() (lease.Token, error){
			"create": func() (lease.Token, error) {
				return tokenIn(e.Dialect.Create(t.Context(), on, []sqlstore.Change{toNext("k")}))
			},
		}
		if e.Driver == "mysql" {
			insert = append(insert, k)
		} else {
			ways["acquire-any"] = func() (lease.Token, error) { return takeOrMake(t, e, on, "acquire-any") }
		}
		ways["acquire-insert"] = func() (n lease.Token, err error) {
			err = on.Query(t.Context(), e.Dialect.Text("acquire-insert"), insert,
				func(conn.Columns) error { n++; return nil })
			return n, err
		}
		for _, set := range []string{"note = note", freed, expired, moved} {
			for way, try := range ways {
				if way == "acquire-any" && set == freed {
					continue // it waits for another who takes it
				}
				ready(t, e, set)
				before := rowOf(t, e)
				first := begun(t, e)
				do(t, first, e.SQL("UPDATE {rowlock} SET acquired_at = acquired_at + {second}"))
				n, err := try()
				do(t, first, "ROLLBACK")
				if err != nil || n != 0 || rowOf(t, e) != before {
					t.Errorf("%s after %s: %d, %v", way, set, n, err)
				}
			}
		}
	})
}

// A call that is answered with a token is answered with nothing else.
func TestEachGrantIsAnsweredOnce(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		if e.Name != "postgres" {
			t.Skip("there a statement answers with a count")
		}
		in := map[lease.Token]*conn.Session{0: readySession(t, e, 0), 100: readySession(t, e, 100)}
		for _, c := range grantStates {
			c.prepare(t, e)
			got, err := takeOrMake(t, e, in[c.era], "acquire-any")
			if err != nil || got != c.want {
				t.Errorf("%+v: token %d, %v", c, got, err)
			}
		}
	})
}

// What is refused locks nothing. On PostgreSQL a row shows the last transaction that has locked it.
func TestEachGrantThatIsRefusedLocksNothing(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		if e.Name != "postgres" {
			t.Skip("there a lock is gone with its transaction")
		}
		on := readySession(t, e, 0)
		for _, c := range []struct{ section, set, waiting string }{
			{"acquire-any", "note = note", ""},
			{"acquire-any", moved + ", " + expired, ""},
			{"claim-any", "note = note", ""},
			{"claim-any", moved + ", " + expired, ""},
			{"claim-any", expired, "a@1"},
			{"claim-any", expired, "a@1 n@2"},
		} {
			ready(t, e, c.set)
			waitsFor(t, e, "k", c.waiting)
			token, err := takeOrMake(t, e, on, c.section)
			var locked int
			failed := e.DB.QueryRowContext(t.Context(), e.SQL("SELECT count(*) FROM {rowlock} WHERE xmax <> 0")).Scan(&locked)
			if err := errors.Join(err, failed); err != nil || token != 0 || locked != 0 {
				t.Errorf("%s after %s while %q wait: token %d, and %d rows were locked; %v",
					c.section, c.set, c.waiting, token, locked, err)
			}
		}
	})
}
