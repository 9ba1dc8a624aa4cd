// Package queue gets keys from a store for the calls of one client, and gives them up. A call asks
// once (Ask), or waits until its keys are granted (Wait). Whatever is given up goes through one
// place, the Releaser.
//
// The waiters of one process stand in one queue for each key, first come, first served. Two orders
// differ in what happens between processes: Attempts has them compete for a free key, and wakes one
// at a time; Tickets has the store keep one queue for all. Nothing here decides which owner has a
// key, and the package knows no handles: its caller must watch what it is granted, or give it up.
package queue

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Queue is where calls wait, and what passes keys on to them.
type Queue interface {
	// Join puts a call into a queue. attempt says that the call asks for its keys at once. An error
	// leaves nothing behind.
	Join(ctx context.Context, c *Call) (w Waiter, attempt bool, err error)
	// Granted notes a grant to this process, which was asked for at sent, and how long that took.
	Granted(key string, token lease.Token, sent time.Time, took time.Duration)
	// GiveUp releases the lease of each item, or gives the key to its next owner, and answers in
	// Answer.
	GiveUp(ctx context.Context, items []Release)
	// Kept is told of a key whose lease no caller holds any more, and which is free when that ends.
	Kept(key string)
	// Freed wakes the waiters of a key, in all processes, that was freed by other means than GiveUp.
	Freed(key string)
	// Wake has the waiters of this process find out whether key is free. "" is every key.
	Wake(key string)
	// Watch listens for keys that other processes release.
	Watch(keys []string) *Watch
	// Notifications is how many this process has been sent, and whether it listens.
	Notifications() (heard int64, connected bool)
	// Stop ends the queue. The last waiter has left, and the last lease was given up.
	Stop()
}

// Waiter is one call that waits in a queue.
type Waiter interface {
	// Attempt asks for the keys.
	Attempt(ctx context.Context) (Grants, error)
	// Lost goes on waiting after an attempt that ended with err, which is passing. again says that
	// the call makes another at once.
	Lost(ctx context.Context, err error) (again bool, failed error)
	// Awaits is the key that the call waits for, one of several.
	Awaits() string
	// Signals wake the call. News, which may be nil, says that Position may have changed.
	Signals() (wake <-chan signal, news <-chan struct{})
	// Position is known once it was polled.
	Position() (p Position, known bool)
	// Seen is what the last poll has read.
	Seen() Seen
	// Won leaves the queue after a grant.
	Won(ctx context.Context, g Grants)
	// Leave leaves the queue without a grant. If the keys were handed over at this very moment, it
	// returns the grant: a grant that races with cancellation wins.
	Leave(ctx context.Context) signal
}

// signal wakes a waiter.
type signal struct {
	// Given says that the key was handed over, as Grant says. Without it the key may be free, and
	// the waiter asks for it.
	Given bool
	Grant Grants
}
