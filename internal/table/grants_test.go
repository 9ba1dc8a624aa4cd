package table_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// grantState is a state of the row of "k", and the token that a grant of it has: 0 if it cannot be
// granted.
type grantState struct {
	set        string // "": there is no row
	era, floor lease.Token
	want       lease.Token
}

var grantStates = []grantState{
	{freed, 0, 0, 6},
	{freed, 100, 0, 101},
	{expired, 0, 0, 6},
	{expired, 100, 0, 101},
	{"note = note", 0, 0, 0},
	{moved + ", " + freed, 0, 0, 0},
	{moved + ", " + expired, 0, 0, 0},
	{spent + ", " + freed, 0, 0, 0},
	{spent + ", " + expired, 0, 0, 0},
	{"", 0, 7, 8},
	{"", 100, 7, 101},
	{"", 0, lease.MaxToken, 0},
}

// grantWays are the ways to be granted "k" by one call of the dialect.
var grantWays = map[string]func(ctx context.Context, d *sqlstore.Dialect, s *conn.Session, absent bool) (lease.Token, error){
	"update": acquireBy(adapter.Update), "insert": acquireBy(adapter.Insert),
	"apply": applyBy(false), "apply all": applyBy(true),
	"apply any": func(ctx context.Context, d *sqlstore.Dialect, s *conn.Session, absent bool) (lease.Token, error) {
		if absent {
			return acquireBy(adapter.Update)(ctx, d, s, absent)
		}
		return tokenIn(d.ApplyAny(ctx, s, []sqlstore.Change{toNext("k")}, 1, nil))
	},
}

func toNext(key string) sqlstore.Change {
	return sqlstore.Change{From: lease.Lease{Key: key}, To: next, Note: "n", TTL: time.Hour}
}

func acquireBy(strategy adapter.Strategy) func(context.Context, *sqlstore.Dialect, *conn.Session, bool) (lease.Token, error) {
	return func(ctx context.Context, d *sqlstore.Dialect, s *conn.Session, _ bool) (lease.Token, error) {
		a, err := d.Acquire(ctx, s, strategy, lease.AcquireRequest{Key: "k", Owner: next, TTL: time.Hour, Note: "n"})
		if !a.Granted {
			return 0, nil // the error is that of a token that has run out, or of another placement
		}
		return a.Token, err
	}
}

func applyBy(all bool) func(context.Context, *sqlstore.Dialect, *conn.Session, bool) (lease.Token, error) {
	return func(ctx context.Context, d *sqlstore.Dialect, s *conn.Session, absent bool) (lease.Token, error) {
		if absent {
			return tokenIn(d.Create(ctx, s, []sqlstore.Change{toNext("k")}))
		}
		return tokenIn(d.Apply(ctx, s, []sqlstore.Change{toNext("k")}, all))
	}
}

func tokenIn(got []sqlstore.Applied, err error) (lease.Token, error) {
	if err != nil || len(got) != 1 || got[0].Outcome != sqlstore.Done {
		return 0, err
	}
	return got[0].Token, nil
}

func TestEachGrantDecidesForItself(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for way, grant := range grantWays {
			in := map[lease.Token]*conn.Session{0: readySession(t, e, 0), 100: readySession(t, e, 100)}
			for _, c := range grantStates {
				c.prepare(t, e)
				got, err := grant(t.Context(), e.Dialect, in[c.era], c.set == "")
				if err != nil || got != c.want {
					t.Errorf("%s, %+v: token %d, %v", way, c, got, err)
				}
				owner, token := owned(t, e)
				if mine := owner == string(next[:]); mine != (c.want > 0) || mine && token != c.want || mine != grantedNow(t, e) {
					t.Errorf("%s, %+v: the row has owner %x and token %d, granted now: %t", way, c, owner, token, grantedNow(t, e))
				}
			}
		}
	})
}

// readySession is one that grants in an era.
func readySession(t *testing.T, e *testdb.Env, era lease.Token) *conn.Session {
	t.Helper()
	on := sessionOf(t, e)
	on.EraAt(era)
	if err := e.Dialect.Setup(t.Context(), on); err != nil {
		t.Fatal(err)
	}
	return on
}

func (c *grantState) prepare(t *testing.T, e *testdb.Env) {
	t.Helper()
	e.Exec(t, "UPDATE {rowlock_floor} SET floor = ?", c.floor)
	if c.set == "" {
		e.Exec(t, "DELETE FROM {rowlock}")
		return
	}
	ready(t, e, c.set)
	e.Exec(t, "UPDATE {rowlock} SET acquired_at = "+longAgo)
}

// owned is the owner of k and its token; "" and 0 if there is no row.
func owned(t *testing.T, e *testdb.Env) (string, lease.Token) {
	t.Helper()
	found, err := e.DB.QueryContext(context.Background(), e.SQL("SELECT owner, token FROM {rowlock} WHERE {key} = ?"), k)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	var owner []byte
	var token lease.Token
	for found.Next() {
		if err := found.Scan(&owner, &token); err != nil {
			t.Fatal(err)
		}
	}
	return string(owner), token
}

// A change of a row that has an owner is one of the row that was meant, in a batch and alone.
func TestEachChangeOfALeaseDecidesForItself(t *testing.T) {
	had := lease.Lease{Key: "k", Owner: holder, Token: 5}
	ways := map[string]func(ctx context.Context, d *sqlstore.Dialect, s *conn.Session) (bool, error){
		"renew": func(ctx context.Context, d *sqlstore.Dialect, s *conn.Session) (bool, error) {
			got, err := d.Renew(ctx, s, []lease.RenewRequest{{Lease: had, TTL: time.Hour}})
			return err == nil && got[0].Outcome == lease.Extended, err
		},
		"release in a batch": func(ctx context.Context, d *sqlstore.Dialect, s *conn.Session) (bool, error) {
			n, err := tokenIn(d.Apply(ctx, s, []sqlstore.Change{{From: had}}, false))
			return n > 0, err
		},
		"hand over in a batch": func(ctx context.Context, d *sqlstore.Dialect, s *conn.Session) (bool, error) {
			n, err := tokenIn(d.Apply(ctx, s, []sqlstore.Change{{From: had, To: next, Note: "n", TTL: time.Hour}}, false))
			return n > 0, err
		},
		"release": func(ctx context.Context, d *sqlstore.Dialect, s *conn.Session) (bool, error) {
			_, err := d.Release(ctx, s, had)
			return false, err
		},
	}
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for way, do := range ways {
			on := readySession(t, e, 0)
			for _, set := range []string{"note = note", moved, taken, takenExpired, freed, raised, expired} {
				ready(t, e, set)
				before := rowOf(t, e)
				did, err := do(t.Context(), e.Dialect, on)
				if way == "release" {
					did = rowOf(t, e) != before
				}
				// A lease that has expired is still its owner's to give back.
				allowed := set == "note = note" || set == expired && way != "renew"
				if err != nil || did != allowed || !allowed && rowOf(t, e) != before {
					t.Errorf("%s after %s: %t, %v; it made of\n%s\n%s", way, set, did, err, before, fmt.Sprint(rowOf(t, e)))
				}
			}
		}
	})
}

// The update that takes a row which is expected to be free takes no other. On SQLite it takes an
// expired one too.
func TestEachUpdateTakesOnlyAFreeRow(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		args := map[string][]any{
			"sqlite": {hour / 1000, next[:], "n", k},
			"pgx":    {k, next[:], "n", hour},
			"mysql":  {next[:], "n", hour, k, k},
		}[e.Driver]
		for set, want := range map[string]bool{
			freed: true, expired: e.Name == "sqlite", "note = note": false, taken: false,
			freed + ", " + moved: false, freed + ", " + spent: false, expired + ", " + moved: false, expired + ", " + spent: false,
		} {
			ready(t, e, set)
			before := rowOf(t, e)
			if _, err := rowsOf(t, on, strings.ReplaceAll(e.Dialect.Text("acquire-update"), "@era", "0"), args); err != nil {
				t.Error(err)
			}
			if owner, _ := owned(t, e); (owner == string(next[:])) != want || !want && rowOf(t, e) != before {
				t.Errorf("%s: taken by %x", set, owner)
			}
		}
	})
}
