package paxosbridge

import (
	"context"
	"fmt"
	"math"
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
	for {
		row, err := b.reroute(ctx, key)
		if err != nil || row.Home == lease.HomeTable {
			return err
		}
		if row.Home == b.cfg.Home { // also when it has come back meanwhile, and moved out again
			// Two epochs on: odd ones are not the table's.
			if _, err := b.table.Recall(ctx, key, returning, lease.Epoch(row.Token)+2); err != nil {
				return err
			}
			continue
		}
		if err := b.finishForce(ctx, row); err != nil {
			return err
		}
		if err := sleep(ctx, min(b.untilBack(row), b.cfg.Refresh)); err != nil {
			return fmt.Errorf("paxosbridge: %q will be back in the table in %s: %w", key, b.untilBack(row).Round(time.Millisecond), err)
		}
	}
}

// untilBack is how long a key that is being taken back must still be waited for, by the database's clock: then every process has read
// that it is not in the cluster any more, or has given up what it had there.
func (b *Bridge) untilBack(row lease.Record) time.Duration {
	all := b.cfg.Delegation + min(b.cfg.Delegation/10, math.MaxInt64-b.cfg.Delegation)
	return max(0, all+min(row.Remaining, 0)) // what remains counts from when it was taken, and is negative
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

// stay is for how long a key is to be held in the cluster.
type stay struct {
	key string
	ttl time.Duration
}

// doubts says which of them must not be: no lease that the cluster grants or renews ends later than Delegation after its key's row was
// read. What the row says of the others is in the routes now.
func (b *Bridge) doubts(ctx context.Context, stays []stay) map[stay]error {
	if b.cfg.Delegation == 0 {
		return nil
	}
	found := make(map[stay]error)
	var stale []stay
	for _, s := range stays {
		switch {
		case s.ttl > b.cfg.Delegation:
			found[s] = fmt.Errorf("%w: paxosbridge: %q is asked for for %s, longer than Config.Delegation (%s)", lease.ErrConfig, s.key, s.ttl, b.cfg.Delegation)
		case b.isStale(s):
			stale = append(stale, s)
		}
	}
	b.revalidate(ctx, stale, found)
	return found
}

func (b *Bridge) isStale(s stay) bool {
	stale := true
	b.routes.with(s.key, func(r *route) { stale = time.Since(r.read) > b.cfg.Delegation-s.ttl })
	return stale
}

// revalidate reads the rows. A key without a row has not been said to be in the cluster either: what is known of it is as old as before.
func (b *Bridge) revalidate(ctx context.Context, stale []stay, found map[stay]error) {
	if len(stale) == 0 {
		return
	}
	keys := make([]string, len(stale))
	for i, s := range stale {
		keys[i] = s.key
	}
	rows, err := b.ask(ctx, keys, "its row said so")
	for _, s := range stale {
		if _, ok := rows[s.key]; err != nil {
			found[s] = fmt.Errorf("paxosbridge: %q cannot be held on to in the cluster while the database does not say that it is there: %w", s.key, err)
		} else if !ok {
			found[s] = fmt.Errorf("%w: %q has no row any more, and so nothing says that it is in the cluster; an audit finds out", lease.ErrBusy, s.key)
		}
	}
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
