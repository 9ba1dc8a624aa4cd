package rowlock

import (
	"context"
	"fmt"
	"iter"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/trace"
	"github.com/rowlockdb/rowlock/lease"
)

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
// failed, and the iteration goes on; break out of it if you wish. An error beside an Event with a
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
	if err == nil && c.isClosed() {
		err = fmt.Errorf("%w: watch %q", lease.ErrClosed, prefix)
	}
	if err != nil {
		return func(yield func(Event, error) bool) { yield(Event{}, err) }
	}
	all := c.events.Watch(ctx, c.space.Full(prefix))
	if c.space == nil {
		return all
	}
	return func(yield func(Event, error) bool) {
		for e, err := range all {
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
// and a Prefix as many as lie between, on a connection of the pool beside Lanes. It returns
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
