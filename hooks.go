package rowlock

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
)

// Hooks are told of events, for metrics and traces. Each may be nil. They are called without any
// lock held and must not panic.
//
// Acquired, Contended, Waiting, HolderChanged and Expired are called on the goroutine of the call
// that they are about; so are Releasing, Released and UnlockFailed, if that is a call of Unlock.
// One that blocks there holds up its own call, and the calls of this process that wait behind it
// for the same key.
//
// All others, and lines of Config.Logger, are the work of one goroutine of the client, one after
// the other, soon after the event:
// so are Releasing, Released and UnlockFailed of Close, of a lock that had leaked, and of a lock
// that UnlockTx freed. A context has ended before its Lost is called. One that blocks there holds
// up the hooks and lines behind it and nothing else, no lease and no context. 65,536 wait for it at
// most: more are dropped, which Stats.Untold counts and the next line tells. Close waits for those
// that are left for 2 s, and drops the rest.
//
// Every Acquired is followed by exactly one Released or Lost: a gauge that Acquired raises and both
// others lower is the number of locks held, and is 0 after Close. A Reentrant call adds no event,
// because its lock is the first call's, and the client calls none for the lock of its own reaper.
//
// The ctx of a hook is there for its values, so that a span can have a parent. It may have ended.
// Where a hook names no other, it is the lock's context: that of Lock.Context, which has the values
// of the ctx given to Lock.
type Hooks struct {
	// Acquired: a lock was granted after waiting so long. ctx is that of the call. If Acquired
	// panics, the lock is released.
	Acquired func(ctx context.Context, key string, token Token, waited time.Duration)
	// Contended: an attempt found the key held. A waiter makes an attempt when the key may be free,
	// not at each poll. ctx is that of the call.
	Contended func(ctx context.Context, key string, holder *HeldError)
	// Waiting: a call of Lock or Do begins to wait, or its position has changed. It is called on
	// the caller's own goroutine, with the ctx of the call. See OnWait for a single call.
	Waiting func(ctx context.Context, key string, w Waiting)
	// HolderChanged: a call that waits for key has seen another holder than before, by the polls of
	// the client: grants between two polls are one change. token is the new holder's, or 0 on a
	// store that does not say; then a change shows by the holder's note alone. It is called on the
	// caller's own goroutine, with the ctx of the call, for each call that waits: a thousand waiters
	// cost a thousand calls for each change.
	HolderChanged func(ctx context.Context, key string, token Token, holder *HeldError)
	// Expired: a call that waits for key is about to ask for it, because the last holder's lease ran
	// out and was not released: its process has died, hangs, or is cut off. holder.Remaining is how
	// long ago, as a negative number. ctx is that of the call. It is not called for a key that was
	// locked with MinHold, whose lease its holder may have left to run out.
	//
	// It is what a poll has read. An attempt does not learn whether the key was released or had
	// expired, so that TryLock, and a call of Lock that gets the key at once, tell nothing.
	Expired func(ctx context.Context, key string, token Token, holder *HeldError)
	// Releasing: the client is about to ask the store to free the key, for Unlock, Close, or the
	// release of a lock that had leaked. The next holder's Acquired may come before the store has
	// answered, and so before Released: metrics of hand-overs begin here. It is not called for a
	// key that MinHold keeps locked, until UnlockNow frees it, nor for one that UnlockTx frees. ctx
	// is as for Released.
	Releasing func(ctx context.Context, key string, token Token)
	// Released: the lock ended by Unlock, UnlockTx, Close, or the release of a lock that had leaked,
	// after it was held so long. After UnlockFailed the key may still be locked. ctx is that of
	// Unlock. It is that of LockAll for keys that LockAll got and could not keep, and the lock's
	// context if no call of Unlock has ended the lock.
	Released func(ctx context.Context, key string, token Token, held time.Duration)
	// UnlockFailed: the row of a lock that has ended could not be released in time; err is
	// ErrUnknown. The client goes on trying, and the key is free when the lease expires at the
	// latest. Released is called too, unless Lost was. ctx is as for Released.
	UnlockFailed func(ctx context.Context, key string, token Token, err error)
	// Lost: a lock ended otherwise than by its holder; cause is ErrLost, ErrMaxHold or
	// ErrIdle. An Unlock that comes later adds no event.
	Lost func(ctx context.Context, key string, token Token, cause error)
	// Forced: an operator took a lost lock of this client away; f is the record, and f.Key is the
	// full key. Lost was called before. It is what a read of the records has found soon after the
	// loss: a store without records tells nothing, and a read that fails is not repeated. ctx is
	// context.Background() with a deadline.
	Forced func(ctx context.Context, f lease.Forced)
	// Leaked: the handle of a lock became garbage without Unlock; the lock was held for age and is
	// being released: Released or Lost follows. taken is the call stack that took it, with
	// Config.Debug.
	Leaked func(ctx context.Context, key string, token Token, age time.Duration, taken string)
	// Suspected: a call has waited for more than 5 s for a key that this client has held all the
	// time, or this process is one of several that hold keys and wait for each other's. Contexts do
	// not say whether that is a deadlock, so nothing is done about it. It is told once for the same
	// locks. ctx is context.Background(), because several calls take part.
	Suspected func(ctx context.Context, s Suspicion)
	// Renewed: a call to the store has renewed so many leases, and took so long. A client renews up
	// to 500 leases in one call, so that 10,000 locks make 20 calls every RenewEvery. ctx is the
	// context of the lock if it was one lease, and otherwise context.Background().
	Renewed func(ctx context.Context, leases int, took time.Duration)
	// RenewFailed: a renewal of so many leases returned an error. The client tries again until
	// their deadlines. ctx is as for Renewed.
	RenewFailed func(ctx context.Context, err error, leases int)
	// Evicted: a session of the database was ended, because its transaction had kept an expired key
	// locked for Config.EvictAfter. With an error the session goes on: it is another user's, or
	// unknown (0). ctx has the values of the ctx of the call that found the key locked.
	Evicted func(ctx context.Context, key string, session int64, err error)
	// Skewed: the store's clock ran ahead of ours by so much between two renewals. ctx is
	// context.Background().
	Skewed func(ctx context.Context, ahead time.Duration)
}

// Then returns hooks that call those of h and then those of next, so that metrics leave an
// application's own hooks in place. A hook that one of them lacks is the other's alone, and costs
// nothing more. If a hook of h panics, that of next is not called.
func (h Hooks) Then(next Hooks) Hooks {
	return Hooks{
		Acquired:      then4(h.Acquired, next.Acquired),
		Contended:     then3(h.Contended, next.Contended),
		Waiting:       then3(h.Waiting, next.Waiting),
		HolderChanged: then4(h.HolderChanged, next.HolderChanged),
		Expired:       then4(h.Expired, next.Expired),
		Releasing:     then3(h.Releasing, next.Releasing),
		Released:      then4(h.Released, next.Released),
		UnlockFailed:  then4(h.UnlockFailed, next.UnlockFailed),
		Lost:          then4(h.Lost, next.Lost),
		Forced:        then2(h.Forced, next.Forced),
		Leaked:        then5(h.Leaked, next.Leaked),
		Suspected:     then2(h.Suspected, next.Suspected),
		Renewed:       then3(h.Renewed, next.Renewed),
		RenewFailed:   then3(h.RenewFailed, next.RenewFailed),
		Evicted:       then4(h.Evicted, next.Evicted),
		Skewed:        then2(h.Skewed, next.Skewed),
	}
}

// apart returns hooks of which q calls those that no caller of the client waits for.
func (h Hooks) apart(q *tell.Queue) Hooks {
	h.Lost, h.Forced = tell.Later4(q, h.Lost), tell.Later2(q, h.Forced)
	h.Leaked, h.Suspected = tell.Later5(q, h.Leaked), tell.Later2(q, h.Suspected)
	h.Renewed, h.RenewFailed = tell.Later3(q, h.Renewed), tell.Later3(q, h.RenewFailed)
	h.Evicted, h.Skewed = tell.Later4(q, h.Evicted), tell.Later2(q, h.Skewed)
	return h
}

// released returns hooks of which q calls also those of releases that no caller waits for.
func (h Hooks) released(q *tell.Queue) Hooks {
	h.Releasing, h.Released = tell.Later3(q, h.Releasing), tell.Later4(q, h.Released)
	h.UnlockFailed = tell.Later4(q, h.UnlockFailed)
	return h
}

func then2[A, B any](f, g func(A, B)) func(A, B) {
	return either(f, f == nil, g, g == nil, func(a A, b B) { f(a, b); g(a, b) })
}

func then3[A, B, C any](f, g func(A, B, C)) func(A, B, C) {
	return either(f, f == nil, g, g == nil, func(a A, b B, c C) { f(a, b, c); g(a, b, c) })
}

func then4[A, B, C, D any](f, g func(A, B, C, D)) func(A, B, C, D) {
	return either(f, f == nil, g, g == nil, func(a A, b B, c C, d D) { f(a, b, c, d); g(a, b, c, d) })
}

func then5[A, B, C, D, E any](f, g func(A, B, C, D, E)) func(A, B, C, D, E) {
	return either(f, f == nil, g, g == nil, func(a A, b B, c C, d D, e E) { f(a, b, c, d, e); g(a, b, c, d, e) })
}

// either returns the hook that is there, or the one that calls both.
func either[F any](f F, noF bool, g F, noG bool, both F) F {
	switch {
	case noF:
		return g
	case noG:
		return f
	}
	return both
}

// Waiting is what a caller of Lock can show while it waits: "behind nightly-report on web-3, 2
// ahead".
type Waiting struct {
	// Ahead is how many waiters stand before this one: of a Fair client in the whole queue,
	// otherwise in this process.
	Ahead int
	// Identity is that of the holder's client, Holder the holder's note. Both are as they were found:
	// quote them in a log, as lease.Describe does. Remaining is how long the lease still lasts unless
	// renewed.
	Identity, Holder string
	Remaining        time.Duration
	// Since is how long the call has waited.
	Since time.Duration
}

// Stats are a client's numbers since it was opened. A gauge goes up and down; a counter never
// falls. The client's own lock, of its reaper, is not counted, except in Batches, Requests and
// Statements.
//
// Its fields are read one after the other, while the client works: they may differ by what happens
// meanwhile.
type Stats struct {
	// Held is a gauge of the locks that were granted and have not ended: Acquired less Released
	// less Lost. A lock whose Unlock is under way is held.
	Held int64
	// Waiting is a gauge of the calls that found a key held and wait for it, without candidates.
	Waiting int64

	// Acquired, Released and Lost count locks as the hooks of these names do.
	Acquired, Released, Lost int64
	// Contended counts how often an attempt found a key held.
	Contended int64
	// Deadlocks counts calls that were ended because callers had waited for each other in a cycle.
	Deadlocks int64
	// UnlockFailed counts locks whose row could not be released in time.
	UnlockFailed int64
	// Leaks counts locks whose handle became garbage without Unlock.
	Leaks int64

	// Renewals counts calls to the store that have renewed leases, Renewed the leases renewed, and
	// RenewFailed those that a call could not renew: a lease is counted at each try.
	Renewals, Renewed, RenewFailed int64

	// OrphansOpen is a gauge of requests with an unknown outcome, of which the client releases what
	// they may have left. OrphansCleaned counts those for which this is done.
	OrphansOpen, OrphansCleaned int64

	// HintsHeard counts notifications of other processes that a key may be free. On PostgreSQL
	// those of this process count too, and on SQLite every change of the file.
	HintsHeard int64
	// Listening is a gauge: 1 while notifications reach this client, and otherwise 0. A client
	// listens while it waits, and 10 s longer.
	Listening int64

	// Untold counts log lines and calls of hooks that were dropped, because the Logger or a hook did
	// not return.
	Untold int64
	// Traced counts the events that Config.Trace has written, and TraceDropped those that are missing.
	Traced, TraceDropped int64

	// ConnectionsOpen is a gauge of the connections that the store has open, and ConnectionsBusy of
	// those that run something now. These and the following are 0 if the store keeps none. Of clients
	// that share a store each shows what all of them do.
	ConnectionsOpen, ConnectionsBusy int64
	// Batches counts how often one of them took what was pending, and Requests what was taken:
	// Requests divided by Batches is the mean size of a batch. Statements counts what was sent for
	// them, without BEGIN, COMMIT and ROLLBACK. Transactions of the application, as in Fence, are
	// not counted.
	Batches, Requests, Statements int64
}
