package table_test

import (
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/lease"
)

// waiting begins to wait for two keys, or stops.
func (c *cell) waiting(begins bool) act {
	process, keys := lease.NewOwner(), []string{c.key, c.key + "/also"}
	if !begins {
		wantIs(c, c.clean.Register(c.Context(), process, "", keys, ttl), nil)
	}
	return act{
		do: func(ctx context.Context) error {
			if begins {
				return c.store.Register(ctx, process, "", keys, ttl)
			}
			return c.store.Unregister(ctx, process, keys)
		},
		check: func() {
			c.arrive(false)
			c.arrive(true)
			c.wantAwaited(c.clean.Awaited(c.Context(), lease.NewOwner(), append(keys, "nobody's")))(begins, begins, false)
			c.wantAwaited(c.clean.Awaited(c.Context(), process, keys))(false, false)
		},
	}
}

// asking looks who waits.
func (c *cell) asking() act {
	process := lease.NewOwner()
	wantIs(c, c.clean.Register(c.Context(), process, "", []string{c.key}, ttl), nil)
	var got []bool
	return act{
		do: func(ctx context.Context) (err error) {
			got, err = c.store.Awaited(ctx, lease.NewOwner(), []string{"nobody's", c.key})
			return err
		},
		check: func() { c.wantAwaited(got, nil)(false, true) },
	}
}

func (c *cell) wantAwaited(got []bool, err error) func(want ...bool) {
	return func(want ...bool) {
		c.Helper()
		if err != nil || !slices.Equal(got, want) {
			c.Errorf("awaited are %v, %v; want %v", got, err, want)
		}
	}
}
