package table_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// The statements of the wait queue of "k" by themselves. A ticket is written as waiter@rank, with
// "-" for one that is dead, and "?" as the rank of a process that only awaits the key. The owner
// "next" is n, and the holder h.

func waiterOf(name byte) lease.Owner {
	switch name {
	case 'n':
		return next
	case 'h':
		return holder
	}
	return lease.Owner{name}
}

// waitsFor leaves the tickets of a key, in this order.
func waitsFor(t *testing.T, e *testdb.Env, key, tickets string) {
	t.Helper()
	e.Exec(t, "DELETE FROM {rowlock_queue} WHERE {key} = ?", []byte(key))
	for _, text := range strings.Fields(tickets) {
		until, owner := later, waiterOf(text[0])
		if strings.HasSuffix(text, "-") {
			until = past
		}
		rank := any(text[2] - '0')
		if text[2] == '?' {
			rank = nil
		}
		e.Exec(t, "INSERT INTO {rowlock_queue} ({key}, waiter, {rank}, note, ttl, alive_until) VALUES (?, ?, ?, 'waits', ?, "+until+")",
			[]byte(key), owner[:], rank, hour)
	}
}

// inLine are the tickets of k, in order of waiters.
func inLine(t *testing.T, e *testdb.Env) string {
	t.Helper()
	found, err := e.DB.QueryContext(context.Background(), e.SQL("SELECT waiter, {rank}, CASE WHEN alive_until > {now} THEN '' ELSE '-' END"+
		" FROM {rowlock_queue} WHERE {key} = ? ORDER BY waiter"), k)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	var all []string
	for found.Next() {
		var owner []byte
		var rank sql.NullInt64
		var dead string
		if err := found.Scan(&owner, &rank, &dead); err != nil {
			t.Fatal(err)
		}
		all = append(all, letterOf(owner)+"@"+ranked(rank)+dead)
	}
	return strings.Join(all, " ")
}

func letterOf(owner []byte) string {
	switch string(owner) {
	case string(next[:]):
		return "n"
	case string(holder[:]):
		return "h"
	}
	return string(owner[:1])
}

func ranked(rank sql.NullInt64) string {
	switch {
	case !rank.Valid:
		return "?"
	case rank.Int64 > 9:
		return "now"
	}
	return fmt.Sprint(rank.Int64)
}

// claims are what waits when n claims the key, whether it is n's turn, and what waits afterwards.
var claims = []struct {
	before string
	turn   bool
	after  string
}{
	{"", true, ""},
	{"a@1-", true, "a@1-"},
	{"a@?", true, "a@?"},
	{"a@1", false, ""},
	{"n@2 a@3 b@4", true, "a@3 b@4"},
	{"n@2 a@1", false, ""},
	{"n@2 a@2", true, "a@2"},
	{"a@2 n@2", false, ""},
}

// A claim is granted what an acquire would be, if it is the claimant's turn, and uses up the ticket
// of the claimant and no other.
func TestEachClaimDecidesForItself(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		in := map[lease.Token]*conn.Session{0: readySession(t, e, 0), 100: readySession(t, e, 100)}
		ways := map[string]func(on *conn.Session) (lease.Token, error){
			"claim": func(on *conn.Session) (lease.Token, error) {
				a, err := e.Dialect.Claim(t.Context(), on, lease.AcquireRequest{Key: "k", Owner: next, TTL: time.Hour, Note: "n"})
				if !a.Granted {
					return 0, nil // the error is that of a token that has run out, or of another placement
				}
				return a.Token, err
			},
		}
		if e.Driver == "pgx" {
			ways["claim-any"] = func(on *conn.Session) (token lease.Token, err error) { return takeOrMake(t, e, on, "claim-any") }
		}
		for way, claim := range ways {
			for _, q := range claims {
				for _, c := range grantStates {
					c.prepare(t, e)
					waitsFor(t, e, "k", q.before)
					want, line := c.want, q.after
					if !q.turn || want == 0 {
						want, line = 0, sorted(q.before)
					}
					got, err := claim(in[c.era])
					owner, token := owned(t, e)
					if mine := owner == string(next[:]); err != nil || got != want || mine != (want > 0) || mine && token != want {
						t.Errorf("%s of %q, %+v: token %d, %v, want %d; the row has owner %x and token %d", way, q.before, c, got, err, want, owner, token)
					}
					if left := inLine(t, e); left != line {
						t.Errorf("%s of %q, %+v: %q wait, want %q", way, q.before, c, left, line)
					}
				}
			}
		}
	})
}

// sorted are tickets as inLine has them.
func sorted(tickets string) string {
	words := strings.Fields(tickets)
	slices.SortFunc(words, func(a, b string) int {
		one, other := waiterOf(a[0]), waiterOf(b[0])
		return bytes.Compare(one[:], other[:])
	})
	return strings.Join(words, " ")
}

// takeOrMake is a statement of PostgreSQL that takes a key in any state.
func takeOrMake(t *testing.T, e *testdb.Env, on *conn.Session, section string) (granted lease.Token, err error) {
	t.Helper()
	answers := 0
	err = on.Query(t.Context(), e.Dialect.Text(section), []any{k, next[:], "n", hour, lease.Bucket("k")},
		func(row conn.Columns) error {
			var state, remaining int64
			var token lease.Token
			var note []byte
			answers++
			err := row.Scan(&state, &token, &note, &remaining)
			if state == 1 {
				granted = token
			}
			return err
		})
	if err == nil && answers > 1 {
		err = fmt.Errorf("%d answers", answers)
	}
	return granted, err
}

// passes are what waits when the holder passes the key on, to whom it goes, and what waits then.
var passes = []struct{ before, to, after string }{
	{"", "", ""},
	{"a@1-", "", "a@1-"},
	{"a@?", "", "a@?"},
	{"h@1", "", "h@1"},
	{"a@2 b@1 h@0", "b", "h@0 a@2"},
	{"b@1 a@1", "b", "a@1"},
}

// A key is passed on by its holder, to the first that waits, with a token above that of the row and
// the era. If none waits, or no token is left, it is free.
func TestEachPassDecidesForItself(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		in := map[lease.Token]*conn.Session{0: readySession(t, e, 0), 100: readySession(t, e, 100)}
		for _, q := range passes {
			for _, c := range []struct {
				set        string
				token, era lease.Token
				tokenAfter lease.Token // 0: nothing is done
			}{
				{"note = note", 5, 0, 6},
				{"note = note", 5, 100, 101},
				{"note = note", 0, 0, 6},
				{expired, 5, 0, 6},
				{moved, 5, 0, 0},
				{taken, 5, 0, 0},
				{raised, 5, 0, 0},
				{raised, 0, 0, 7},
				{spent, 0, 0, lease.MaxToken},
			} {
				ready(t, e, c.set)
				waitsFor(t, e, "k", q.before)
				e.Exec(t, "UPDATE {rowlock} SET acquired_at = "+longAgo)
				before := rowOf(t, e)
				_, err := e.Dialect.Pass(t.Context(), in[c.era], lease.Lease{Key: "k", Owner: holder, Token: c.token})
				now, line := rowOf(t, e), inLine(t, e)
				owner, token := owned(t, e)
				to := ""
				if owner != "" {
					to = letterOf([]byte(owner))
				}
				wantTo, wantToken, wantLine := q.to, c.tokenAfter, q.after
				switch {
				case c.tokenAfter == 0:
					if err != nil || now != before || line != sorted(q.before) {
						t.Errorf("passed to %q after %s: %v; it made of\n%s\n%s, and %q wait", q.before, c.set, err, before, now, line)
					}
					continue
				case c.set == spent:
					wantTo, wantLine = "", sorted(q.before)
				case wantTo == "" && c.set == raised:
					wantToken = 6
				case wantTo == "":
					wantToken = 5
				}
				if err != nil || to != wantTo || token != wantToken || line != wantLine {
					t.Errorf("passed to %q after %s: %v; it is %q's with token %d, want %q and %d; %q wait, want %q",
						q.before, c.set, err, to, token, wantTo, wantToken, line, wantLine)
				}
				if granted := grantedNow(t, e); granted != (wantTo != "") {
					t.Errorf("passed to %q after %s: it was granted now: %t", q.before, c.set, granted)
				}
			}
		}
	})
}

// grantedNow is whether the row's last grant is not as old as longAgo.
func grantedNow(t *testing.T, e *testdb.Env) (now bool) {
	t.Helper()
	query := e.SQL("SELECT COUNT(*) > 0 FROM {rowlock} WHERE acquired_at > " + longAgo + " + {second}" +
		strings.Repeat(" + {second}", 20))
	if err := e.DB.QueryRowContext(t.Context(), query).Scan(&now); err != nil {
		t.Fatal(err)
	}
	return now
}

// The update that takes a free row with an empty queue in one statement takes no other, and knows
// who waits from who does not.
func TestEachClaimOfAFreeRowLooksAtTheLiving(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		args := []any{k, next[:], "n", hour}
		if e.Driver == "mysql" {
			args = []any{next[:], "n", hour, k, k, k}
		}
		query := strings.ReplaceAll(e.Dialect.Text("claim-update"), "@era", "0")
		for _, c := range []struct {
			set, waiting string
			want         bool
		}{
			{freed, "", true},
			{freed, "a@1-", true},
			{freed, "a@?", true},
			{freed, "a@1", false},
			{"note = note", "", false},
			{freed + ", " + moved, "", false},
			{freed + ", " + spent, "", false},
		} {
			ready(t, e, c.set)
			waitsFor(t, e, "k", c.waiting)
			_, err := rowsOf(t, on, query, args)
			if owner, _ := owned(t, e); err != nil || (owner == string(next[:])) != c.want {
				t.Errorf("%s while %q wait: the row is %x's; %v", c.set, c.waiting, owner, err)
			}
		}
	})
}

// A waiter that is leaving is waited for, and is not given the key behind its back.
func TestEachPassWaitsForATicketThatIsLeaving(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		ready(t, e, "note = note")
		waitsFor(t, e, "k", "a@1")
		first, second := begun(t, e), begun(t, e)
		do(t, second, "ROLLBACK")
		do(t, first, e.SQL("DELETE FROM {rowlock_queue}"))
		ended := make(chan error, 1)
		go func() {
			_, err := e.Dialect.Pass(t.Context(), second, lease.Lease{Key: "k", Owner: holder, Token: 5})
			ended <- err
		}()
		untilOneWaits(t, e, func() bool { return len(ended) > 0 })
		do(t, first, "COMMIT")
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if owner, token := owned(t, e); owner != "" || token != 5 {
			t.Errorf("the row has owner %x and token %d", owner, token)
		}
	})
}
