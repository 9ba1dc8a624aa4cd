package rowlock

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
)

// Force says who takes a lock away from its holder, and why.
type Force struct {
	// Reason is kept with the record: 1 to 1,000 bytes.
	Reason string
	// By names the operator; empty means Config.Identity.
	By string
	// Token is the one that the operator has seen, so that a later holder keeps its lock. 0 takes the
	// key from whichever holder it has.
	Token int64
	// Evict ends the session of a fenced transaction that is under way, as Config.EvictAfter does: it
	// is rolled back. The session of another database user, a prepared transaction and one on SQLite
	// go on, and ErrBusy names them.
	Evict bool
}

// ForceRelease takes a key from its holder, for an operator: a key that readers share from all of
// them. In one transaction it frees the key, raises its token, and keeps a record of who did it,
// when, why and to whom. Waiters are woken.
//
// The holder is not stopped. It is refused at its next Fence or UnlockTx, and its lock ends with
// ErrLost at its next renewal, that is within a third of its TTL unless set otherwise. What it does
// besides fenced transactions may overlap with the next holder's work, as after any lost lock.
//
// A fenced transaction that is under way comes first: ForceRelease waits for it, and returns
// ErrBusy if that takes longer than 5 to 10 s, with the session that it is of, whatever the TTL.
// With Evict it ends that session then. It returns ErrNotHeld if the key is free, or is held with
// another token; ErrMoved for a key that is locked in a cluster (Recall it first) or that a
// transaction of package forupdate locks (end its session); ErrUnknown if the outcome is unknown,
// after which a repetition is safe. Only with ErrUnknown may anything have changed.
func (c *Client) ForceRelease(ctx context.Context, key string, f Force) (lease.Forced, error) {
	r := lease.ForceRequest{
		Key: c.space.Full(key), Token: f.Token, By: cmp.Or(f.By, c.cfg.Identity), Reason: f.Reason,
		ID: lease.NewOwner(), Evict: f.Evict,
	}
	forces, leave, err := c.forces(ctx, "ForceRelease", key)
	if err != nil {
		return lease.Forced{}, err
	}
	defer leave()
	done, err := forces.ForceRelease(ctx, r)
	if err != nil {
		return lease.Forced{}, err
	}
	identity, note := lease.SplitNote(done.Note)
	c.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "rowlock: lock taken from its holder",
		slog.String("key", r.Key), slog.Int64("token", done.Lease.Token),
		slog.String("holder", lease.Describe(identity, note)), slog.String("by", r.By),
		slog.String("reason", r.Reason))
	tell.Of(c.cfg.Logger).Flush(time.Second) // an operator's program may end now
	c.queue.Freed(r.Key)
	c.events.Nudge()
	return c.own(done), nil
}

// ForceReleases lists what ForceRelease has done to the keys of this client or namespace, latest
// first. A filter without a Limit lists 1,000 at most.
func (c *Client) ForceReleases(ctx context.Context, f lease.ForcedFilter) ([]lease.Forced, error) {
	forces, leave, err := c.forces(ctx, "ForceReleases", f.Key)
	if err != nil {
		return nil, err
	}
	defer leave()
	if f.Key != "" {
		f.Key = c.space.Full(f.Key)
	}
	f.Prefix = c.space.Full(f.Prefix)
	all, err := forces.ForceReleases(ctx, f)
	for i := range all {
		all[i] = c.own(all[i])
	}
	return all, err
}

// forces returns what a call of this name needs. leave ends the call; Close waits for it.
func (c *Client) forces(ctx context.Context, call, key string) (
	_ lease.ForceReleaser, leave func(), _ error,
) {
	if err := isnil.Context(call, ctx); err != nil {
		return nil, nil, err
	}
	forces, err := c.store.Forces()
	if err == nil && key != "" {
		err = lease.CheckKey(c.space.Full(key))
	}
	if err == nil && !c.calls.Enter() {
		err = fmt.Errorf("%w: %s %q", lease.ErrClosed, call, key)
	}
	return forces, c.calls.Leave, err
}

// own names the key as this client's callers do.
func (c *Client) own(f lease.Forced) lease.Forced {
	f.Key, f.Lease.Key = c.space.Own(f.Key), c.space.Own(f.Lease.Key)
	return f
}
