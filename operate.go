package rowlock

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/queue"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/internal/trace"
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
	Token Token
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
		slog.String("key", r.Key), slog.Any("token", done.Lease.Token),
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
	if err == nil && (key != "" || call == "ForceRelease") {
		err = cmp.Or(lease.CheckKey(key), lease.CheckKey(c.space.Full(key)))
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

// Event is what became of a key that is watched, and EventKind what it was.
type (
	Event     = lease.Event
	EventKind = lease.EventKind
)

// Kinds of events; see package lease.
const (
	EventGranted  = lease.EventGranted
	EventReleased = lease.EventReleased
	EventExpired  = lease.EventExpired
	EventLapsed   = lease.EventLapsed
	EventLost     = lease.EventLost
	EventMoved    = lease.EventMoved
	EventForced   = lease.EventForced

	// Of the trace alone.
	EventHandedOver  = lease.EventHandedOver
	EventRenewedLate = lease.EventRenewedLate
	EventWaitedLong  = lease.EventWaitedLong
	EventDropped     = lease.EventDropped
)

// Watch yields what becomes of the keys that begin with prefix ("": of all), held by any client,
// until ctx or the client ends:
//
//	for e, err := range locks.Watch(ctx, "report/") {
//
// It first yields EventGranted for each key that is held, in no order, and then the changes. It
// compares listings of the table that are Config.WatchEvery apart, or sooner after a lock of this
// client was taken or has ended. So it tells the state in which it finds a key, and not each step
// on the way there: a key that was released and taken again between two listings is granted anew,
// with its new token, and one that was only locked for a moment may never be seen. What it yields
// is for people and dashboards, and permits nothing: see Fence.
//
// Forced releases are read from their records, so that each is told, with the next holder's grant
// after it.
//
// A slow reader delays no other call. The last event of each key waits for it, of up to 4,096
// keys, and Event.Skipped counts those that it did not get. An error says that a listing has
// failed, and the iteration goes on; break out of it if you like. An error beside an Event with a
// Key says that the row of that key cannot be read, once until it can be: it wraps ErrCorrupt.
//
// All that a client watches is one listing, however many calls there are, with one statement for
// each 1,000 keys that are held. More than 16 prefixes, none of which includes another, list all
// keys.
func (c *Client) Watch(ctx context.Context, prefix string) iter.Seq2[Event, error] {
	err := isnil.Context("watch", ctx)
	if err == nil && len(prefix) > lease.MaxKey {
		err = fmt.Errorf("%w: a prefix of %d bytes to watch; no key is longer than %d",
			lease.ErrConfig, len(prefix), lease.MaxKey)
	}
	if err == nil && queue.IsClosed(c.closed) {
		err = fmt.Errorf("%w: watch %q", lease.ErrClosed, prefix)
	}
	if err != nil {
		return func(yield func(Event, error) bool) { yield(Event{}, err) }
	}
	return func(yield func(Event, error) bool) {
		for e, err := range c.events.Watch(ctx, c.space.Full(prefix)) {
			if e.Key = c.space.Own(e.Key); !yield(e, err) {
				return
			}
		}
	}
}

// TraceEvent is an event of the trace, and TraceFilter selects some; see package lease.
type (
	TraceEvent  = lease.TraceEvent
	TraceFilter = lease.TraceFilter
)

// Trace lists what has become of the keys of this client or namespace, latest first, by all clients
// with Config.Trace; this one need not have it. With the filter's Key it is that key's timeline. It
// is a page of Filter.Limit events, 1,000 unless set: give the last of them as Filter.Before for
// the next page, until a page is empty.
//
// It lists the forced releases too, of which there are records without a trace, and EventDropped
// where a client could not write events, of whatever keys: with its Identity, and in each
// namespace, whatever tenants the client serves. Times are the store's, to within the time that a
// statement takes. Clients learn of what they do at different moments: of two events of a key with
// different tokens, the one with the lower token was first.
//
// What it lists is for people, and permits nothing. A timeline reads as many rows as a page has,
// and a Prefix as many as lie between, on a connection of the pool beside Connections. It returns
// ErrPool if the pool has none to spare, ErrPrivilege if this user may not read the tables of the
// trace or of forced releases, and an error that names the cure if a reading takes longer than 4 s.
func (c *Client) Trace(ctx context.Context, f TraceFilter) ([]TraceEvent, error) {
	if err := isnil.Context("Trace", ctx); err != nil {
		return nil, err
	}
	tracer, err := c.store.Traces()
	if err != nil {
		return nil, err
	}
	if f.Key != "" {
		f.Key = c.space.Full(f.Key)
		err = lease.CheckKey(f.Key)
	}
	if f.Prefix = c.space.Full(f.Prefix); err == nil && len(f.Prefix) > lease.MaxKey {
		err = fmt.Errorf("%w: a prefix of %d bytes to trace; no key is longer than %d", lease.ErrConfig,
			len(f.Prefix), lease.MaxKey)
	}
	if err == nil && !c.calls.Enter() { // Close waits for this call before it closes the store
		err = fmt.Errorf("%w: Trace", lease.ErrClosed)
	}
	if err != nil {
		return nil, err
	}
	defer c.calls.Leave()
	forces, _ := c.store.Forces()
	all, err := trace.Read(ctx, tracer, forces, f)
	for i := range all {
		all[i].Key = c.space.Own(all[i].Key)
	}
	return all, err
}
