package table_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// What a sweep may remove is dead, of this placement, has a token that another grant can follow,
// and is not locked.
func TestEachSweepFindsOnlyWhatIsDead(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		const minute = 60_000_000
		found := func(on *conn.Session, retention int64) string {
			n, err := rowsOf(t, on, e.Dialect.Text("dead-lock"), []any{e.Dialect.List([]string{"k"}), retention})
			if err != nil {
				t.Error(err)
			}
			return strings.Repeat("k", n)
		}
		on := readySession(t, e, 0)
		for _, c := range []struct {
			set       string
			retention int64
			want      string
		}{
			{expired, 0, "k"},
			{expired + ", " + freed, 0, "k"},
			{expired, minute, ""},
			{"note = note", 0, ""},
			{expired + ", " + moved, 0, ""},
			{expired + ", " + spent, 0, ""},
		} {
			ready(t, e, c.set)
			if got := found(on, c.retention); got != c.want {
				t.Errorf("%s, retention %d: found %q, want %q", c.set, c.retention, got, c.want)
			}
		}
		if e.Name == "sqlite" {
			return
		}
		ready(t, e, expired)
		first := begun(t, e)
		if got := found(first, 0); got != "k" || found(on, 0) != "" {
			t.Errorf("a sweep has found %q, and another does not pass over it", got)
		}
		do(t, first, "ROLLBACK")
	})
}

// A walk goes through all rows in order of keys, and says which of them are dead.
func TestEachWalkGoesOnFromTheLastRow(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		e.Exec(t, "DELETE FROM {rowlock}")
		for _, name := range []string{"e", "c", "a", "d", "b"} {
			e.Exec(t, "INSERT INTO {rowlock} ({key}, owner, note, token, acquired_at, expires_at, placement)"+
				" VALUES (?, NULL, '', 5, {now}, {now} - {second}, 0)", []byte(name))
		}
		e.Exec(t, "UPDATE {rowlock} SET expires_at = "+later+" WHERE {key} = ?", []byte("b"))
		e.Exec(t, "UPDATE {rowlock} SET placement = 3 WHERE {key} = ?", []byte("d"))
		on := readySession(t, e, 0)
		for _, c := range []struct {
			after string
			size  int
			want  string
		}{{"", 2, "a b-"}, {"", 3, "a c"}, {"a", 2, "c"}, {"b", 2, "c d-"}, {"c", 9, "e"}, {"e", 2, ""}} {
			var got []string
			err := on.Query(t.Context(), e.Dialect.Text("dead"), []any{[]byte(c.after), c.size, 0, c.size},
				func(row conn.Columns) error {
					var key []byte
					var dead bool
					err := row.Scan(&key, &dead)
					got = append(got, string(key)+map[bool]string{false: "-"}[dead])
					return err
				})
			if all := strings.Join(got, " "); err != nil || all != c.want {
				t.Errorf("%d rows after %q: %q, want %q; %v", c.size, c.after, all, c.want, err)
			}
		}
	})
}

// A floor is never lowered, and one that is being raised is waited for, by the next sweep and by
// whatever makes a row.
func TestEachFloorOnlyRises(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		var got lease.Token
		floor := func() (err error) {
			return on.QueryRow(t.Context(), e.Dialect.Text("floor-lock"), []any{lease.Bucket("k")}, &got)
		}
		for _, c := range []struct{ to, want lease.Token }{{7, 7}, {3, 7}, {9, 9}} {
			_, err := on.Change(t.Context(), e.Dialect.Text("floor-raise"), c.to, lease.Bucket("k"))
			if failed := floor(); err != nil || failed != nil || got != c.want {
				t.Errorf("raised to %d, it is %d, want %d; %v, %v", c.to, got, c.want, err, failed)
			}
		}
		if e.Name == "sqlite" {
			return
		}
		first, second := begun(t, e), begun(t, e)
		do(t, second, "ROLLBACK")
		for way, read := range map[string]func() error{
			"the floor is read": func() error {
				return second.QueryRow(t.Context(), e.Dialect.Text("floor-lock"), []any{lease.Bucket("k")}, &got)
			},
			"a row is made": func() (err error) {
				got, err = acquireBy(adapter.Update)(t.Context(), e.Dialect, second, true)
				got--
				return err
			},
			"a row is claimed": func() (err error) {
				a, err := e.Dialect.Claim(t.Context(), second, lease.AcquireRequest{Key: "k", Owner: next, TTL: time.Hour})
				got = a.Token - 1
				return err
			},
			"a row is made first": func() (err error) {
				got, err = acquireBy(adapter.Insert)(t.Context(), e.Dialect, second, true)
				got--
				return err
			},
			"rows are made": func() (err error) {
				got, err = applyBy(false)(t.Context(), e.Dialect, second, true)
				got--
				return err
			},
		} {
			e.Exec(t, "DELETE FROM {rowlock}")
			e.Exec(t, "UPDATE {rowlock_floor} SET floor = 7")
			do(t, first, "BEGIN")
			do(t, first, e.SQL("UPDATE {rowlock_floor} SET floor = 20"))
			ended := make(chan error, 1)
			go func() { ended <- read() }()
			untilOneWaits(t, e, func() bool { return len(ended) > 0 })
			do(t, first, "COMMIT")
			if err := <-ended; err != nil || got != 20 {
				t.Errorf("%s: the floor was %d, and is 20; %v", way, got, err)
			}
		}
	})
}

// fences are what a fence asks for, and what it makes of the lease: "-" if it finds none.
var fences = []struct {
	set  string
	ttl  int64
	want string
}{
	{"note = note", 0, "the same"},
	{"note = note", 1, "the same"},
	{"note = note", hour, "longer"},
	{expired, 0, "the same"},
	{expired, hour, "the same"},
	{moved, hour, "-"},
	{taken, hour, "-"},
	{raised, hour, "-"},
}

// A fence finds the lease that it names, extends one that runs and never shortens it.
func TestEachFenceDecidesForItself(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		for _, c := range fences {
			ready(t, e, c.set)
			e.Exec(t, "UPDATE {rowlock} SET acquired_at = expires_at")
			args := []any{k, holder[:], 5, c.ttl}
			if e.Driver == "mysql" {
				args = args[:3]
			}
			n, err := fenced(t, on, e, args)
			if e.Driver == "mysql" && err == nil && n > 0 {
				e.Exec(t, "UPDATE {rowlock} SET acquired_at = acquired_at - INTERVAL 1 MICROSECOND") // its mark
				if c.ttl > 0 {
					_, err = on.Change(t.Context(), e.Dialect.Text("fence-extend"), c.ttl, k)
				}
			}
			became := "the same"
			query := e.SQL("SELECT CASE WHEN expires_at > acquired_at THEN 'longer' WHEN expires_at < acquired_at" +
				" THEN 'shorter' ELSE 'the same' END FROM {rowlock}")
			failed := e.DB.QueryRowContext(t.Context(), query).Scan(&became)
			if want := strings.Replace(c.want, "-", "the same", 1); failed != nil || became != want {
				t.Errorf("%s, %d µs: the lease is %s, want %s; %v", c.set, c.ttl, became, want, failed)
			}
			if err != nil || n > 0 != (c.want != "-") {
				t.Errorf("%s, %d µs: %d rows, %v", c.set, c.ttl, n, err)
			}
		}
	})
}
