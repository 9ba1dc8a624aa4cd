package table_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

func eachQueue(t *testing.T, f func(c *cell)) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		f(&cell{TB: t, rig: newRig(t, e, sqlstore.Update, 2), key: "k"})
	})
}

func (c *cell) count(db *sql.DB, query string) (n int) {
	c.Helper()
	if err := db.QueryRowContext(c.Context(), c.SQL(query)).Scan(&n); err != nil {
		c.Fatal(err)
	}
	return n
}

// A process that wants to be told when a key is released has a row without rank, and is no waiter.
func TestAProcessThatOnlyAwaitsAKeyIsNeverServed(t *testing.T) {
	eachQueue(t, func(c *cell) {
		l, process := hold(c, c.clean, c.key), ticket(c.key)
		c.Exec(c, `INSERT INTO {rowlock_queue} ({key}, waiter, alive_until) VALUES (?, ?, {now}`+strings.Repeat(` + {second}`, 60)+`)`, []byte(c.key), process.Owner[:])
		t := ticket(c.key)
		c.join(t)
		if p := c.place(t); p.Ahead != 0 || p.Missing {
			c.Errorf("behind a process that awaits the key, a ticket stands at %+v", p)
		}
		if p := c.place(process); !p.Missing {
			c.Errorf("a process that awaits the key stands at %+v", p)
		}
		for _, to := range []lease.Owner{t.Owner, {}} {
			passed, err := c.store.Pass(c.Context(), []lease.Lease{l})
			if err != nil || passed[0].To != to {
				c.Fatalf("passed %+v, %v; want it to be passed to %v", passed, err, to)
			}
			l = lease.Lease{Key: c.key, Owner: to, Token: passed[0].Token}
		}
		claimed, err := c.store.Claim(c.Context(), []lease.AcquireRequest{ticket(c.key).AcquireRequest})
		if err != nil || !claimed[0].Granted {
			c.Errorf("a claim beside a process that awaits the key: %+v, %v", claimed, err)
		}
	})
}

func TestASweepRemovesDeadTicketsAndLeavesTheOthers(t *testing.T) {
	eachQueue(t, func(c *cell) {
		var tickets []lease.Ticket
		for i := range 7 {
			t := ticket(c.key + string(rune('a'+i/3)))
			tickets = append(tickets, t)
		}
		if err := c.clean.Join(c.Context(), tickets); err != nil {
			c.Fatal(err)
		}
		for i, t := range tickets {
			if i != 4 {
				c.Exec(c, `UPDATE {rowlock_queue} SET alive_until = {now} - {second} WHERE {key} = ? AND waiter = ?`, []byte(t.Key), t.Owner[:])
			}
		}
		for _, o := range []struct {
			lease.SweepOptions
			left int
		}{{lease.SweepOptions{Retention: time.Hour, Batch: 2}, 7}, {lease.SweepOptions{Batch: 2}, 1}} {
			if _, err := c.store.Sweep(c.Context(), o.SweepOptions); err != nil {
				c.Fatal(err)
			}
			if n := c.count(c.DB, `SELECT count(*) FROM {rowlock_queue}`); n != o.left {
				c.Errorf("after %+v %d tickets are left, want %d", o.SweepOptions, n, o.left)
			}
		}
		if p := c.place(tickets[4]); p.Missing || p.Ahead != 0 {
			c.Errorf("the ticket that was alive stands at %+v", p)
		}
	})
}

// Who was served leaves nothing behind, or the queue of a busy key would grow until the next sweep.
func TestAGrantLeavesNoTicket(t *testing.T) {
	eachQueue(t, func(c *cell) {
		t := ticket(c.key)
		c.join(t)
		claimed, err := c.store.Claim(c.Context(), []lease.AcquireRequest{t.AcquireRequest})
		if err != nil || !claimed[0].Granted {
			c.Fatalf("claimed %+v, %v", claimed, err)
		}
		l := lease.Lease{Key: c.key, Owner: t.Owner, Token: claimed[0].Token}
		c.join(ticket(c.key))
		if passed, err := c.store.Pass(c.Context(), []lease.Lease{l}); err != nil || passed[0].To.IsZero() {
			c.Fatalf("passed %+v, %v", passed, err)
		}
		if n := c.count(c.DB, `SELECT count(*) FROM {rowlock_queue}`); n != 0 {
			c.Errorf("%d tickets are left of 2 that were served", n)
		}
	})
}

// A ticket without a tenant costs what it did before there were tenants. One with a tenant reads
// its turn first, and a heartbeat of several reads which of them are there.
func TestStatementsOfTenants(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, sqlstore.Update, 1)
		join := func(tenants ...string) []lease.Ticket {
			tickets := make([]lease.Ticket, len(tenants))
			for i, tenant := range tenants {
				tickets[i] = ticket("key")
				tickets[i].Tenant = tenant
			}
			return tickets
		}
		count := func(tickets ...lease.Ticket) int {
			r.log.Reset()
			if err := r.store.Join(t.Context(), tickets); err != nil {
				t.Fatal(err)
			}
			return r.log.Count(faultdb.Op.Executes)
		}
		insert := 1 // and on MySQL an update before it
		if e.Driver == "mysql" {
			insert = 2
		}
		none, a, b := join("", ""), join("a", "a"), join("b")
		for _, c := range []struct {
			what    string
			tickets []lease.Ticket
			want    int
		}{
			{"without a tenant", none[:1], insert},
			{"one of two there", none, insert},
			{"a heartbeat", none, 1},
			{"of a tenant", a[:1], 1 + insert},
			{"another", b, 1 + insert},
			{"a heartbeat of a tenant", a[:1], 2},
			{"one of two of a tenant there", a, 1 + 1 + 1 + insert},
			{"a heartbeat of two", a, 2},
			{"a heartbeat of all", append(none, a...), 2},
		} {
			if got := count(c.tickets...); got != c.want {
				t.Errorf("%s: %d statements, want %d", c.what, got, c.want)
			}
		}
	})
}

// A holder's late heartbeat does not bring its ticket back. A holder whose lease has expired
// waits like any other caller.
func TestAnExpiredHolderJoinsAgain(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, sqlstore.Update, 2)
		c := &cell{TB: t, rig: r, key: "k"}
		waits := ticket("k")
		got, err := r.store.Claim(t.Context(), []lease.AcquireRequest{waits.AcquireRequest})
		if err != nil || !got[0].Granted {
			t.Fatalf("claim: %+v, %v", got, err)
		}
		c.join(waits)
		var tickets int
		count := e.SQL(`SELECT COUNT(*) FROM {rowlock_queue}`)
		if err := e.DB.QueryRowContext(t.Context(), count).Scan(&tickets); err != nil || tickets != 0 {
			t.Errorf("a holder has %d tickets after a late heartbeat, %v", tickets, err)
		}
		e.Expire(t, "k")
		c.join(waits)
		if p := c.place(waits); p.Missing || p.Ahead != 0 {
			t.Errorf("a holder whose lease has expired joined, and stands at %+v", p)
		}
	})
}

// SQLite's clock has milliseconds. Ranks are equal within one, and then the tickets' numbers
// decide.
func TestADeadTicketGetsANewNumber(t *testing.T) {
	r := newRig(t, testdb.Kinds[0].Open(t), sqlstore.Update, 2)
	c := &cell{TB: t, rig: r, key: "k"}
	hold(t, r.store, "k")
	first, second := ticket("k"), ticket("k")
	c.join(first)
	c.join(second)
	r.Exec(t, `UPDATE {rowlock_queue} SET alive_until = {now} - {second} WHERE waiter = ?`, first.Owner[:])
	c.join(first)
	r.Exec(t, `UPDATE {rowlock_queue} SET rank = 1`)
	if one, two := c.place(first), c.place(second); one.Ahead != 1 || two.Ahead != 0 {
		t.Errorf("the ticket that was dead stands at %+v, and the other at %+v", one, two)
	}
}
