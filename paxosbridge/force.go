package paxosbridge

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// ForceReturn takes a key back from a cluster that is lost for good, without asking it. It needs Config.Delegation, in every process. It
// returns when the key can be locked in the table, which takes a little longer than Delegation; if it is interrupted, or this process
// dies, whoever asks for the key later, or an audit, finishes it.
//
// Whoever holds the key in the cluster meanwhile loses it, unless his clock is slower than the database's by more than a tenth: that two
// hold it at once rests on clocks here, as it does whenever a lease expires. Tokens and Fence do not: what the old holder writes under
// his token is refused from the first moment on.
func (b *Bridge) ForceReturn(ctx context.Context, key string) error {
	if b.cfg.Delegation == 0 {
		return fmt.Errorf("%w: paxosbridge: ForceReturn %q needs Config.Delegation, so that it is known how long others go by what they have read", lease.ErrConfig, key)
	}
	row, err := b.reroute(ctx, key)
	if err != nil {
		return err
	}
	if row.Home == b.cfg.Home {
		// Two epochs on: odd ones are not the table's.
		if _, err := b.table.Recall(ctx, key, returning, lease.Epoch(row.Token)+2); err != nil {
			return err
		}
	}
	for row.Home != lease.HomeTable {
		if row, err = b.reroute(ctx, key); err != nil {
			return err
		}
		if row.Home == returning {
			if err := b.finishForce(ctx, row); err != nil {
				return err
			}
			if err := sleep(ctx, min(b.untilBack(row), b.cfg.Refresh)); err != nil {
				return fmt.Errorf("paxosbridge: %q will be back in the table in %s: %w", key, b.untilBack(row).Round(time.Millisecond), err)
			}
		}
	}
	return nil
}

// untilBack is how long a key that is being taken back must still be waited for, by the database's clock: then every process has read
// that it is not in the cluster any more, or has given up what it had there.
func (b *Bridge) untilBack(row lease.Record) time.Duration {
	return max(0, b.cfg.Delegation+b.cfg.Delegation/10+row.Remaining) // what remains counts from when it was taken, and is negative
}

// finishForce brings back a key whose time is over. Without Delegation nobody knows when that is.
func (b *Bridge) finishForce(ctx context.Context, row lease.Record) error {
	if b.cfg.Delegation == 0 || b.untilBack(row) > 0 {
		return nil
	}
	ok, err := b.table.Return(ctx, row.Key, returning, lease.Epoch(row.Token))
	if ok {
		b.moved(ctx, row.Key, lease.HomeTable, lease.Epoch(row.Token)+1, "taken back by force")
	}
	return err
}

// validated makes sure that no lease which the cluster grants now ends later than Delegation after its key's row was read.
func (b *Bridge) validated(ctx context.Context, reqs []lease.AcquireRequest) error {
	if b.cfg.Delegation == 0 {
		return nil
	}
	var keys []string
	for i := range reqs {
		r := &reqs[i]
		if r.TTL > b.cfg.Delegation {
			return fmt.Errorf("%w: paxosbridge: %q is asked for for %s, longer than Config.Delegation (%s)", lease.ErrConfig, r.Key, r.TTL, b.cfg.Delegation)
		}
		if b.isStale(r.Key, r.TTL) {
			keys = append(keys, r.Key)
		}
	}
	return b.revalidate(ctx, keys)
}

func (b *Bridge) validatedRenewals(ctx context.Context, reqs []lease.RenewRequest) error {
	if b.cfg.Delegation == 0 {
		return nil
	}
	var keys []string
	for i := range reqs {
		if r := &reqs[i]; b.isStale(r.Key, r.TTL) {
			keys = append(keys, r.Key)
		}
	}
	return b.revalidate(ctx, keys)
}

func (b *Bridge) isStale(key string, ttl time.Duration) bool {
	stale := true
	b.routes.with(key, func(r *route) { stale = time.Since(r.read)+ttl > b.cfg.Delegation })
	return stale
}

func (b *Bridge) revalidate(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	if _, err := b.ask(ctx, keys, "its row said so"); err != nil {
		return fmt.Errorf("paxosbridge: %d keys of the cluster cannot be held on to while the database does not say that they are there: %w", len(keys), err)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
