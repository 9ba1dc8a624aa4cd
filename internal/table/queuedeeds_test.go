package table_test

import (
	"context"

	"github.com/rowlockdb/rowlock/lease"
)

// What the matrix does to those who wait in order. Sections that change the row and the ticket must
// do both or neither.
var queueing = []deed{
	{name: "join", begin: (*cell).joining},
	{name: "claim an absent key", begin: func(c *cell) act { return c.claiming(c.floor(c, c.key), false) }},
	{name: "claim a free row", begin: func(c *cell) act {
		l := hold(c, c.clean, c.key)
		release(c, c.clean, l)
		return c.claiming(l.Token, false)
	}},
	{name: "claim an expired row with a ticket", begin: func(c *cell) act {
		l := hold(c, c.clean, c.key)
		c.Expire(c, c.key)
		return c.claiming(l.Token, true)
	}},
	{name: "pass to a ticket", begin: (*cell).passing},
	{name: "pass to nobody", begin: (*cell).passingToNobody},
}

func ticket(key string) lease.Ticket {
	r := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl, Note: "mine"}
	return lease.Ticket{AcquireRequest: r, Priority: 5}
}

func waiter(t lease.Ticket) []lease.Lease { return []lease.Lease{{Key: t.Key, Owner: t.Owner}} }

func (c *cell) join(t lease.Ticket) {
	c.Helper()
	if _, err := c.clean.Join(c.Context(), []lease.Ticket{t}); err != nil {
		c.Fatal(err)
	}
}

func (c *cell) place(t lease.Ticket) lease.QueuePosition {
	c.Helper()
	places, err := c.clean.QueuePositions(c.Context(), waiter(t))
	if err != nil {
		c.Fatal(err)
	}
	return places[0]
}

func (c *cell) joining() act {
	first, t, last := ticket(c.key), ticket(c.key), ticket(c.key)
	c.join(first)
	return act{
		do: func(ctx context.Context) error {
			_, err := c.store.Join(ctx, []lease.Ticket{t, first})
			return err
		},
		check: func() {
			c.join(last)
			c.arrive(false)
			c.arrive(true)
			for i, waits := range []lease.Ticket{first, t, last} {
				if p := c.place(waits); p.Missing || p.Ahead != i && !c.unresolved {
					c.Errorf("ticket %d stands at %+v", i, p)
				}
			}
		},
	}
}

// claiming gets a key whose last token was last, with a ticket or without, and sees that it is used
// up.
func (c *cell) claiming(last lease.Token, joins bool) act {
	t := ticket(c.key)
	if joins {
		c.join(t)
	}
	var got []lease.Acquired
	return act{
		do: func(ctx context.Context) (err error) {
			got, err = c.store.Claim(ctx, []lease.AcquireRequest{t.AcquireRequest})
			return err
		},
		check: func() {
			c.wantGrantAfter(last, got[0])
			l := lease.Lease{Key: c.key, Owner: t.Owner, Token: got[0].Token}
			c.arrive(false)
			c.wantHeldBy(l)
			if r := release(c, c.store, l); r.Gone {
				c.Error("the lease was gone when it was released")
			}
			c.wantFree(l.Token)
			if p := c.place(t); !p.Missing {
				c.Errorf("a ticket that was used stands at %+v", p)
			}
			c.ghosts(l)
		},
	}
}

// passing gives a lease to the first of two, and not to the second as well.
func (c *cell) passing() act {
	l := hold(c, c.clean, c.key)
	first, second := ticket(c.key), ticket(c.key)
	c.join(first)
	c.join(second)
	var got []lease.Passed
	return act{
		do: func(ctx context.Context) (err error) {
			got, err = c.store.Pass(ctx, []lease.Lease{l})
			return err
		},
		check: func() {
			if got[0].Gone && !c.unresolved || got[0].Err != nil {
				c.Errorf("got %+v for a lease that was held until then", got[0])
			}
			c.arrive(false)
			c.arrive(true)
			next := lease.Lease{Key: c.key, Owner: first.Owner, Token: l.Token + 1}
			c.wantHeldBy(next)
			if p := c.place(second); p.Missing || p.Ahead != 0 {
				c.Errorf("the second stands at %+v", p)
			}
			passed, err := c.clean.Pass(c.Context(), []lease.Lease{next})
			if err != nil || passed[0].To != second.Owner {
				c.Errorf("the next pass: %+v, %v", passed, err)
			}
		},
	}
}

func (c *cell) passingToNobody() act {
	l := hold(c, c.clean, c.key)
	var got []lease.Passed
	return act{
		do: func(ctx context.Context) (err error) {
			got, err = c.store.Pass(ctx, []lease.Lease{l})
			return err
		},
		check: func() {
			if got[0].Gone && !c.unresolved || got[0].Err != nil || !got[0].To.IsZero() {
				c.Errorf("got %+v for a lease that was held until then", got[0])
			}
			c.wantFree(l.Token)
			next := hold(c, c.clean, c.key)
			c.arrive(false)
			c.arrive(true)
			c.wantHeldBy(next)
		},
	}
}
