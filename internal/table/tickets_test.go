package table_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

func ticketOf(name byte) lease.Ticket {
	return lease.Ticket{AcquireRequest: lease.AcquireRequest{
		Key: "k", Owner: waiterOf(name), TTL: time.Hour, Note: "note of " + string(name),
	}}
}

// A ticket that lives keeps its rank, and only its waiter's heartbeat changes it. One that has died
// begins anew. The owner of the key needs none.
func TestEachTicketDecidesForItself(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		for _, c := range []struct{ row, before, joins, after, notes string }{
			{"note = note", "", "a", "a@now", "a"},
			{"note = note", "a@1 b@2", "a", "a@1 b@2", "a"},
			{"note = note", "a@1 b@2", "ab", "a@1 b@2", "ab"},
			{"note = note", "a@1 b@2", "c", "a@1 b@2 c@now", "c"},
			{"note = note", "a@1- b@2-", "a", "a@now b@2-", "a"},
			{"note = note", "a@? b@?", "a", "a@now b@?", "a"},
			{"note = note", "a@1 b@2-", "abc", "a@1 b@now c@now", "abc"},
			{"note = note", "", "ha", "a@now", "a"},
			{"note = note", "h@1-", "h", "h@1-", ""},
			{expired, "", "h", "h@now", "h"},
			{taken, "", "h", "h@now", "h"},
		} {
			ready(t, e, c.row)
			waitsFor(t, e, "k", c.before)
			var tickets []lease.Ticket
			for i := range c.joins {
				tickets = append(tickets, ticketOf(c.joins[i]))
			}
			err := e.Dialect.Join(t.Context(), on, tickets)
			if line := inLine(t, e); err != nil || line != c.after {
				t.Errorf("%s joins %q: %v; %q wait, want %q", c.joins, c.before, err, line, c.after)
			}
			if notes := notesOf(t, e); notes != c.notes {
				t.Errorf("%s joins %q: the notes of %q are new, want %q", c.joins, c.before, notes, c.notes)
			}
		}
	})
}

// A ticket that begins anew has the place of a new one. On SQLite that is its number, because ranks
// are equal within a tick of the clock.
func TestEachTicketThatBeginsAnewIsTheLast(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		ready(t, e, "note = note")
		for _, before := range []string{"a@1- b@2", "a@? b@2"} {
			waitsFor(t, e, "k", before)
			if err := e.Dialect.Join(t.Context(), on, []lease.Ticket{ticketOf('a')}); err != nil {
				t.Error(err)
			}
			var later int
			a, b := waiterOf('a'), waiterOf('b')
			query := e.SQL("SELECT CASE WHEN a.ticket > b.ticket THEN 1 ELSE 0 END" +
				" FROM {rowlock_queue} a JOIN {rowlock_queue} b ON b.waiter = ? WHERE a.waiter = ?")
			err := e.DB.QueryRowContext(t.Context(), query, b[:], a[:]).Scan(&later)
			if err != nil || e.Name == "sqlite" && later == 0 {
				t.Errorf("in %q: %v; it is later than the other: %d", before, err, later)
			}
		}
	})
}

// notesOf are the waiters whose ticket has the note that they joined with, and a life of an hour.
func notesOf(t *testing.T, e *testdb.Env) (all string) {
	t.Helper()
	found, err := e.DB.QueryContext(context.Background(), e.SQL("SELECT waiter, note FROM {rowlock_queue}"+
		" WHERE {key} = ? AND note <> 'waits' AND alive_until > "+later+" ORDER BY waiter"), k)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var owner []byte
		var note string
		if err := found.Scan(&owner, &note); err != nil {
			t.Fatal(err)
		}
		if name := letterOf(owner); note == "note of "+name {
			all += name
		} else {
			t.Errorf("%s has the note %q", name, note)
		}
	}
	return all
}

// Only the ticket that is named leaves, and only one that is still dead is removed.
func TestEachTicketThatGoesIsTheOneThatIsMeant(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		waitsFor(t, e, "l", "a@1-")
		ready(t, e, "note = note")
		named := func(names string) (all []lease.Lease) {
			for i := range names {
				all = append(all, lease.Lease{Key: "k", Owner: waiterOf(names[i])})
			}
			return all
		}
		const minute = 60_000_000
		for _, c := range []struct {
			before string
			do     func() error
			after  string
		}{
			{"a@1 b@2 c@3", func() error { return e.Dialect.Leave(t.Context(), on, named("ac")) }, "b@2"},
			{"a@1- b@2- c@3", func() error { return e.Dialect.DropDead(t.Context(), on, named("ac"), 0) }, "b@2- c@3"},
			{"a@1- b@2- c@3", func() error { return e.Dialect.DropDead(t.Context(), on, named("ac"), minute) }, "a@1- b@2- c@3"},
		} {
			waitsFor(t, e, "k", c.before)
			if err, line := c.do(), inLine(t, e); err != nil || line != c.after {
				t.Errorf("of %q: %v; %q wait, want %q", c.before, err, line, c.after)
			}
		}
		var left int
		if err := e.DB.QueryRowContext(t.Context(), e.SQL("SELECT COUNT(*) FROM {rowlock_queue}")).Scan(&left); err != nil || left != 4 {
			t.Errorf("%d tickets are left, want 3 and that of another key: %v", left, err)
		}
	})
}

// A walk meets the tickets that have been dead for so long, in order, each once.
func TestEachDeadTicketIsMetOnce(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		for key, tickets := range map[string]string{"j": "c@1- a@1-", "k": "b@1- a@1 d@?- c@1-", "l": "a@1-"} {
			waitsFor(t, e, key, tickets)
		}
		walk := func(retention int64) (met string) {
			var after lease.Lease
			for range 10 {
				dead, err := e.Dialect.DeadTickets(t.Context(), on, after, retention, 2)
				if err != nil {
					t.Fatal(err)
				}
				for _, after = range dead {
					met += after.Key + letterOf(after.Owner[:]) + " "
				}
				if len(dead) == 0 {
					break
				}
			}
			return strings.TrimSpace(met)
		}
		if met, want := walk(0), "ja jc kb kc kd la"; met != want {
			t.Errorf("met %q, want %q", met, want)
		}
		if met := walk(60_000_000); met != "" {
			t.Errorf("%q have been dead for a minute", met)
		}
	})
}

// A place counts the tickets before it that live.
func TestEachPlaceIsThatAmongTheLiving(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		ready(t, e, "note = note")
		waitsFor(t, e, "l", "a@1 b@1")
		waitsFor(t, e, "k", "c@2 a@1- b@1 d@? n@2")
		var asked []lease.Lease
		for _, name := range "abcdnh" {
			asked = append(asked, lease.Lease{Key: "k", Owner: waiterOf(byte(name))})
		}
		places, err := e.Dialect.QueuePositions(t.Context(), on, asked)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for i, p := range places {
			if got += letterOf(asked[i].Owner[:]); !p.Missing && !p.Granted {
				got += fmt.Sprint(p.Ahead)
			}
		}
		if want := "ab0c1dn2h"; got != want || !places[5].Granted {
			t.Errorf("the places are %s, want %s; %+v", got, want, places[5])
		}
	})
}
