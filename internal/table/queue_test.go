package table_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

func eachQueue(t *testing.T, f func(c *cell)) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		f(&cell{TB: t, rig: newRig(t, e, adapter.Update, 2), key: "k"})
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
		if _, err := c.clean.Join(c.Context(), tickets); err != nil {
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

// A holder's late heartbeat does not bring its ticket back. A holder whose lease has expired
// waits like any other caller.
func TestAnExpiredHolderJoinsAgain(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
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
	r := newRig(t, testdb.Kinds[0].Open(t), adapter.Update, 2)
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
