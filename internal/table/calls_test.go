package table_test

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// call is a deed of which the matrix knows nothing.
func call(name string, begin func(c *cell) func(ctx context.Context) error) deed {
	return deed{name: name, begin: func(c *cell) act { return act{do: begin(c)} }}
}

// batches acquire several keys at once.
var batches = []deed{
	call("acquire two free rows", func(c *cell) func(context.Context) error {
		reqs := requests(c.key, c.key+"/2")
		for _, r := range reqs {
			release(c, c.clean, hold(c, c.clean, r.Key))
		}
		return func(ctx context.Context) error { _, err := c.store.Acquire(ctx, reqs); return err }
	}),
	call("acquire two expired rows", func(c *cell) func(context.Context) error {
		reqs := requests(c.key, c.key+"/2")
		for _, r := range reqs {
			hold(c, c.clean, r.Key)
			c.Expire(c, r.Key)
		}
		return func(ctx context.Context) error { _, err := c.store.Acquire(ctx, reqs); return err }
	}),
}

// held are calls of a holder.
var held = []deed{
	call("release two", func(c *cell) func(context.Context) error {
		l := []lease.Lease{hold(c, c.clean, c.key), hold(c, c.clean, c.key+"/2")}
		return func(ctx context.Context) error { _, err := c.store.Release(ctx, l); return err }
	}),
	call("hand over", func(c *cell) func(context.Context) error {
		items := []lease.HandOver{{From: hold(c, c.clean, c.key), To: request(c.key)}}
		return func(ctx context.Context) error { _, err := c.store.HandOver(ctx, items); return err }
	}),
	call("hand over two", func(c *cell) func(context.Context) error {
		items := []lease.HandOver{
			{From: hold(c, c.clean, c.key), To: request(c.key)},
			{From: hold(c, c.clean, c.key+"/2"), To: request(c.key + "/2")},
		}
		return func(ctx context.Context) error { _, err := c.store.HandOver(ctx, items); return err }
	}),
	call("raise", func(c *cell) func(context.Context) error {
		l := hold(c, c.clean, c.key)
		reqs := []lease.RaiseRequest{{Lease: l, To: l.Token + 5}}
		return func(ctx context.Context) error { _, err := c.store.Raise(ctx, reqs); return err }
	}),
	withTx("fence", func(ctx context.Context, s lease.Store, tx lease.Runner, l lease.Lease) error {
		return s.(lease.Fencer).Fence(ctx, tx, l)
	}),
	withTx("fence and renew", func(ctx context.Context, s lease.Store, tx lease.Runner, l lease.Lease) error {
		return s.(lease.RenewingFencer).FenceRenew(ctx, tx, lease.RenewRequest{Lease: l, TTL: 3 * ttl})
	}),
	withTx("release in a transaction", func(ctx context.Context, s lease.Store, tx lease.Runner, l lease.Lease) error {
		return s.(lease.TxReleaser).ReleaseTx(ctx, tx, l)
	}),
	call("downgrade", func(c *cell) func(context.Context) error {
		reqs := []lease.RenewRequest{{Lease: hold(c, c.clean, c.key), TTL: ttl}}
		return func(ctx context.Context) error { _, err := c.store.Downgrade(ctx, reqs); return err }
	}),
	call(abandoned, func(c *cell) func(context.Context) error {
		c.share(c, c.key)
		c.Exec(c, `UPDATE {rowlock_member} SET expires_at = {now} - {second}`)
		return func(ctx context.Context) error { _, err := ask(ctx, c.store, request(c.key)); return err }
	}),
	sharing("share with a member", 1),
	sharing("share two with members", 2),
	call("force release", func(c *cell) func(context.Context) error {
		hold(c, c.clean, c.key)
		return func(ctx context.Context) error {
			_, err := c.store.ForceRelease(ctx, lease.ForceRequest{Key: c.key, ID: lease.NewOwner(), By: "me", Reason: "test"})
			return err
		}
	}),
}

// sharing joins the members of n keys.
func sharing(name string, n int) deed {
	return call(name, func(c *cell) func(context.Context) error {
		var reqs []lease.AcquireRequest
		for i := range n {
			l := hold(c, c.clean, fmt.Sprintf("%s/%d", c.key, i))
			made, err := c.clean.Downgrade(c.Context(), []lease.RenewRequest{{Lease: l, TTL: ttl}})
			if err != nil || made[0].Outcome != lease.Extended {
				c.Fatalf("downgrade: %+v, %v", made, err)
			}
			reqs = append(reqs, request(l.Key))
		}
		return func(ctx context.Context) error { _, err := c.store.Share(ctx, reqs); return err }
	})
}

// inTx does something with a lease in a transaction of the caller's, and commits.
func withTx(name string, f func(context.Context, lease.Store, lease.Runner, lease.Lease) error) deed {
	return call(name, func(c *cell) func(context.Context) error {
		l := hold(c, c.clean, c.key)
		return func(ctx context.Context) error {
			tx, err := c.pool.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := f(ctx, c.store, lease.InTx(tx), l); err != nil {
				return err
			}
			return tx.Commit()
		}
	})
}
