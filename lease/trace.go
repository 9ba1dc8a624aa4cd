package lease

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxDetail is the longest detail of a [TraceEvent] in bytes. A longer one is cut.
const MaxDetail = 255

// Tracer is a Store that keeps a trace: what became of keys, for operators to read. Nothing else
// reads it, and it may be emptied at any time.
type Tracer interface {
	// WriteTrace adds events, all or none. Their keys are those of the store's tables, wherever the
	// keys live. It asks once: after an error that wraps [ErrUnknown] the events may have been added,
	// and to ask again would add them twice.
	WriteTrace(ctx context.Context, events []TraceEvent) error
	// ReadTrace lists events, latest first. It may return an error that names the cure if it takes too
	// long.
	ReadTrace(ctx context.Context, f TraceFilter) ([]TraceEvent, error)
	// SweepTrace removes events that are older than the retention, the oldest first and in small
	// transactions, and returns how many. It removes nothing while an event is written.
	SweepTrace(ctx context.Context, o SweepOptions) (removed int64, err error)
}

// TraceEvent is an event of the trace.
type TraceEvent struct {
	Kind EventKind
	// Key is empty of an event that concerns no key, as [EventDropped].
	Key string
	// At is when, by the store's clock. It is the time at which the store got the event, less its age
	// by the monotonic clock of its client, so that clocks need not agree. It is too late by as long
	// as the statement took to the store. Of an event to write, At is a time of [time.Now].
	At time.Time
	// ID orders events of the same time. Those of one client count up by one.
	ID int64
	// Token and Owner are of the lease that the event is about: 0 if that is not known.
	Token Token
	Owner Owner
	// Identity and Note are its holder's, as in [HeldError].
	Identity, Note string
	// Took is, of a grant, how long the call has waited; of an end, how long the lock was held; of
	// [EventRenewedLate], how late it was; of [EventExpired], how long ago the lease ran out.
	Took time.Duration
	// Dropped is, of [EventDropped], how many events are missing.
	Dropped int64
	// Detail says more, in words: why a lock was lost, where a key has moved to. At most [MaxDetail]
	// bytes of UTF-8.
	Detail string
}

// TraceFilter selects events.
type TraceFilter struct {
	// Key is one key; empty means all that begin with Prefix. Events that concern no key are listed
	// with an empty Prefix alone.
	Key, Prefix string
	// NoKey lists only events that concern no key.
	NoKey bool
	// Before is the last event of the page before, of which At and ID count: the page begins with the
	// event that precedes it. The zero event: the page begins with the latest.
	Before TraceEvent
	// Limit is the largest number of events; 0 means 1,000.
	Limit int
}

// Check returns an error that wraps [ErrInvalidKey] or [ErrConfig] for an event that every store
// refuses.
func (e *TraceEvent) Check() error {
	switch {
	case len(e.Key) > MaxKey:
		return fmt.Errorf("%w: an event of a key of %d bytes; at most %d are allowed", ErrInvalidKey,
			len(e.Key), MaxKey)
	case KindOf(e.Kind.String()) == 0:
		return fmt.Errorf("%w: an event of %q of unknown kind %d", ErrConfig, e.Key, e.Kind)
	}
	return nil
}

// CheckTrace is Check of each event.
func CheckTrace(events []TraceEvent) error {
	for i := range events {
		if err := events[i].Check(); err != nil {
			return err
		}
	}
	return nil
}

// CleanDetail returns text as a store keeps it: UTF-8 without zero bytes, of [MaxDetail] bytes at
// most.
func CleanDetail(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
	if len(text) <= MaxDetail {
		return text
	}
	const more = "…"
	cut := MaxDetail - len(more)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + more
}

// KindOf returns the kind of a name as [EventKind.String] gives it, or 0 for one that this version
// does not know.
func KindOf(name string) EventKind {
	for i, known := range kinds {
		if known == name {
			return EventKind(i + 1)
		}
	}
	return 0
}

// EventKind is what became of a key that is watched.
type EventKind uint8

const (
	// EventGranted: a client holds the key that did not before. A watch begins with one for every
	// key that is held.
	EventGranted EventKind = iota + 1
	// EventReleased: the holder has released the key.
	EventReleased
	// EventExpired: the holder's lease was not renewed and has run out, and no other client has taken
	// the key yet.
	EventExpired
	// EventLapsed: the lease of a lock with MinHold has run out. Its holder had unlocked it, or has
	// died.
	EventLapsed
	// EventLost: the watching client's own lock was lost. Others see how its lease has ended.
	EventLost
	// EventMoved: the key is locked elsewhere than before; see package paxosbridge.
	EventMoved
	// EventForced: an operator took the key from its holder; see rowlock.Client.ForceRelease.
	EventForced

	// Of the trace alone; see rowlock.TraceConfig. EventHandedOver is a grant that the holder made by
	// its release, to a waiter of its own process or, in a Fair client, to the head of the queue.
	EventHandedOver
	// EventRenewedLate: a lease was renewed more than a quarter of its interval too late.
	EventRenewedLate
	// EventWaitedLong: a call has waited for long, and was granted the key or gave up.
	EventWaitedLong
	// EventDropped: a client has dropped events of its trace, because it could not write them in time.
	EventDropped
)

// String names the kind.
func (k EventKind) String() string {
	if k < EventGranted || int(k) > len(kinds) {
		return "unknown"
	}
	return kinds[k-1]
}

var kinds = [...]string{
	"granted", "released", "expired", "lapsed", "lost", "moved", "forced", "handed over", "renewed late",
	"waited long", "dropped",
}

// Event is what became of one key.
type Event struct {
	Kind EventKind
	Key  string
	// Token is that of the grant: of the new holder, or of the one that held the key before.
	Token Token
	// Identity and Note are that holder's, as in HeldError.
	Identity, Note string
	// Remaining is, of a key that is held, how long the lease still lasts unless renewed.
	Remaining time.Duration
	// Skipped is how many events this reader did not get since its last one, because it was slow:
	// earlier events of this key, and those of other keys that were dropped for want of room.
	Skipped int
}
