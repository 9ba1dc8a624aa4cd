package table_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var acquisitions = []deed{
	{name: "acquire an absent key", begin: func(c *cell) act { return c.acquiring(c.floor(c, c.key)) }},
	{name: "acquire a free row", begin: func(c *cell) act {
		l := hold(c, c.clean, c.key)
		release(c, c.clean, l)
		return c.acquiring(l.Token)
	}},
	{name: "acquire an expired row", begin: func(c *cell) act {
		l := hold(c, c.clean, c.key)
		c.Expire(c, c.key)
		return c.acquiring(l.Token)
	}},
	{name: "acquire a held key", begin: (*cell).losing},
	{name: "acquire again", begin: (*cell).repeating},
}

var others = []deed{
	{name: "renew", begin: func(c *cell) act { return c.renewing(1) }},
	{name: "renew a batch", begin: func(c *cell) act { return c.renewing(3) }},
	{name: "release", begin: func(c *cell) act { return c.releasing(false) }},
	{name: "release by owner", begin: func(c *cell) act { return c.releasing(true) }},
	{name: "inspect", recycle: "release", begin: (*cell).inspecting},
	{name: "sweep", begin: (*cell).sweeping},
	{name: "register", begin: func(c *cell) act { return c.waiting(true) }},
	{name: "unregister", begin: func(c *cell) act { return c.waiting(false) }},
	{name: "awaited", begin: (*cell).asking},
}

// wantGrantAfter allows for the row of an absent key to begin higher: other tests delete rows of
// the same bucket meanwhile, which raises its floor.
func (c *cell) wantGrantAfter(last lease.Token, got lease.Acquired) {
	c.Helper()
	absent := strings.HasSuffix(c.deed, "absent key")
	if !got.Granted || got.Token <= last || !absent && got.Token != last+1 {
		c.Fatalf("got %+v, want the one grant after token %d", got, last)
	}
}

// acquiring gets a key whose last token was last.
func (c *cell) acquiring(last lease.Token) act {
	req := lease.AcquireRequest{Key: c.key, Owner: lease.NewOwner(), TTL: ttl, Note: "mine"}
	var got lease.Acquired
	return act{
		do: func(ctx context.Context) (err error) {
			got, err = ask(ctx, c.store, req)
			return err
		},
		check: func() {
			c.wantGrantAfter(last, got)
			if got.Unknown != c.doubt() {
				c.Errorf("Unknown is %t after faults in %v", got.Unknown, c.hits())
			}
			l := lease.Lease{Key: c.key, Owner: req.Owner, Token: got.Token}
			c.arrive(false)
			c.wantHeldBy(l)
			if again, err := ask(c.Context(), c.clean, req); err != nil || !again.Granted || again.Token != got.Token {
				c.Errorf("the same request again was answered %+v, %v; want the same lease", again, err)
			}
			if _, other := acquire(c, c.clean, c.key); other.Granted || other.Holder.Note != "mine" {
				c.Errorf("another owner was answered %+v", other)
			}
			if r := release(c, c.store, l); r.Gone {
				c.Error("the lease was gone when it was released")
			}
			c.wantFree(l.Token)
			c.ghosts(l)
		},
	}
}

// ghosts lets a copy of the acquire that was sent late run after the release, cleans up as a client
// does, and sees that the key can be had.
func (c *cell) ghosts(l lease.Lease) {
	c.arrive(true)
	after := c.row(c, c.key)
	switch {
	case after.Owner == l.Owner && after.Token == l.Token+1:
		if c.late == nil {
			c.Error("the lease came back after its release, though nothing was sent late")
		}
	case after.Owner.IsZero() && after.Token == l.Token:
	default:
		c.Errorf("the row is %+v after %+v was released", after, l)
	}
	release(c, c.clean, lease.Lease{Key: l.Key, Owner: l.Owner})
	if _, next := acquire(c, c.clean, c.key); !next.Granted || next.Token != after.Token+1 {
		c.Errorf("the next owner was answered %+v, want token %d", next, after.Token+1)
	}
}

// losing asks for a key that another has.
func (c *cell) losing() act {
	other := hold(c, c.clean, c.key)
	before := c.row(c, c.key)
	req := lease.AcquireRequest{Key: c.key, Owner: lease.NewOwner(), TTL: ttl}
	var got lease.Acquired
	return act{
		do: func(ctx context.Context) (err error) {
			got, err = ask(ctx, c.store, req)
			return err
		},
		check: func() {
			c.arrive(false)
			if got.Granted || got.Holder.Note != "test" || got.Holder.Remaining <= 0 {
				c.Errorf("got %+v, want to hear of the holder", got)
			}
			c.wantHeldBy(other)
			if after := c.row(c, c.key); after.Remaining > before.Remaining {
				c.Error("a loser extended the holder's lease")
			}
			release(c, c.clean, other)
			c.ghosts(lease.Lease{Key: c.key, Owner: req.Owner, Token: other.Token})
		},
	}
}

// repeating asks for what it has already, as after an outcome that was unknown.
func (c *cell) repeating() act {
	l := hold(c, c.clean, c.key)
	var got lease.Acquired
	return act{
		do: func(ctx context.Context) (err error) {
			got, err = ask(ctx, c.store, lease.AcquireRequest{Key: c.key, Owner: l.Owner, TTL: ttl})
			return err
		},
		check: func() {
			c.arrive(false)
			if !got.Granted || got.Token != l.Token {
				c.Errorf("got %+v, want the lease with token %d", got, l.Token)
			}
			c.wantHeldBy(l)
			release(c, c.clean, l)
			c.wantFree(l.Token)
			c.ghosts(l)
		},
	}
}

func (c *cell) renewing(n int) act {
	reqs := make([]lease.RenewRequest, n)
	for i := range reqs {
		reqs[i].Lease = hold(c, c.clean, fmt.Sprintf("%s/%d", c.key, i))
		reqs[i].TTL = 2 * ttl
	}
	var got []lease.Renewed
	return act{
		do: func(ctx context.Context) (err error) {
			for {
				got, err = c.store.Renew(ctx, reqs)
				if err != nil || !anyBusy(got) {
					return err
				}
				pause(ctx) // what was sent late has the rows locked until it ends
			}
		},
		check: func() {
			c.arrive(false)
			for i, r := range reqs {
				if got[i].Outcome != lease.Extended || got[i].Err != nil || got[i].Clock == 0 {
					c.Errorf("renewal %d was answered %+v", i, got[i])
				}
				c.wantHeldBy(r.Lease)
				if row := c.row(c, r.Key); row.Remaining < ttl {
					c.Errorf("the lease was not extended: %s remain", row.Remaining)
				}
				if gone := release(c, c.store, r.Lease).Gone; gone {
					c.Errorf("lease %d was gone after its renewal", i)
				}
			}
			c.arrive(true)
			for _, r := range reqs { // a late renewal revives nothing, and touches no other lease
				if row := c.row(c, r.Key); !row.Owner.IsZero() || row.Held || row.Token != r.Token {
					c.Errorf("the row is %+v after its release", row)
				}
			}
		},
	}
}

func anyBusy(answers []lease.Renewed) bool {
	for _, a := range answers {
		if a.Outcome == lease.Busy {
			return true
		}
	}
	return false
}

// pause waits a moment for what cannot be waited for.
func pause(ctx context.Context) {
	select {
	case <-time.After(5 * time.Millisecond):
	case <-ctx.Done():
	}
}

func (c *cell) releasing(byOwner bool) act {
	l := hold(c, c.clean, c.key)
	named := l
	if byOwner {
		named.Token = 0
	}
	var got []lease.Released
	return act{
		do: func(ctx context.Context) (err error) {
			got, err = c.store.Release(ctx, []lease.Lease{named})
			return err
		},
		check: func() {
			if got[0].Gone && !c.unresolved || got[0].Err != nil {
				c.Errorf("got %+v for a lease that was held until then", got[0])
			}
			c.wantFree(l.Token)
			next := hold(c, c.clean, c.key)
			c.arrive(false)
			c.arrive(true)
			c.wantHeldBy(next) // a late release releases no other lease
			if next.Token != l.Token+1 {
				c.Errorf("the next token is %d after %d", next.Token, l.Token)
			}
		},
	}
}

func (c *cell) inspecting() act {
	l := hold(c, c.clean, c.key)
	var got []lease.Record
	return act{
		do: func(ctx context.Context) (err error) {
			got, err = c.store.Inspect(ctx, lease.Filter{Keys: []string{c.key}})
			return err
		},
		check: func() {
			if len(got) != 1 || got[0].Lease != l || !got[0].Held || got[0].Note != "test" {
				c.Errorf("got %+v, want %+v", got, l)
			}
		},
	}
}

// sweeping removes one dead row, whose token has grown above its floor.
func (c *cell) sweeping() act {
	c.Exec(c, `DELETE FROM {rowlock}`)
	l := hold(c, c.clean, c.key)
	release(c, c.clean, l)
	c.Exec(c, `UPDATE {rowlock} SET expires_at = {now} - {second} WHERE {key} = ?`, []byte(c.key))
	alive := hold(c, c.clean, c.key+"/alive")
	var removed int64
	return act{
		do: func(ctx context.Context) (err error) {
			removed, err = c.store.Sweep(ctx, lease.SweepOptions{})
			return err
		},
		check: func() {
			c.arrive(false)
			if row := c.row(c, c.key); row.Key != "" || removed > 1 {
				c.Errorf("the row is %+v after a sweep that removed %d", row, removed)
			}
			if len(c.hits()) == 0 && !c.unresolved && removed != 1 {
				c.Errorf("removed %d rows, want 1", removed)
			}
			if f := c.floor(c, c.key); f < l.Token {
				c.Errorf("the floor is %d after a row with token %d was removed", f, l.Token)
			}
			if next := hold(c, c.clean, c.key); next.Token <= l.Token {
				c.Errorf("token %d was followed by %d", l.Token, next.Token)
			}
			c.wantHeldBy(alive)
		},
	}
}

func (c *cell) wantHeldBy(l lease.Lease) {
	c.Helper()
	if row := c.row(c, l.Key); row.Lease != l || !row.Held {
		c.Errorf("the row is %+v, want it held by %s with token %d", row, l.Owner, l.Token)
	}
}

func (c *cell) wantFree(token lease.Token) {
	c.Helper()
	if row := c.row(c, c.key); !row.Owner.IsZero() || row.Held || row.Token != token {
		c.Errorf("the row is %+v, want it free with token %d", row, token)
	}
}

var _ testing.TB = (*cell)(nil)
