// Package acquire gets keys from a store: Ask tries once, Wait until the keys are granted or the
// caller gives up. One key and several go the same way. The package knows no handles: what it
// returns is granted, and the caller must watch it, or give it up.
package acquire

import (
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Want is what one call asks for each of its keys.
type Want struct {
	TTL      time.Duration
	Note     string
	Priority int
	// Quiet: the lock is the client's own, and Contended is not called.
	Quiet bool
	// Show is called when the call begins to wait for key and when its position changes. May be
	// nil.
	Show func(key string, p Position)
}

// Position is what a waiter can be told.
type Position struct {
	// Ahead is how many waiters stand before this one.
	Ahead int
	// Holder is the holder's note, Remaining how long its lease still lasts.
	Holder    string
	Remaining time.Duration
	// Since is how long the call has waited.
	Since time.Duration
}

// Grants are keys that were granted together, each to an owner of its own.
type Grants struct {
	Reqs    []lease.AcquireRequest
	Answers []lease.Acquired
	// Sent is the moment before the request was sent. Leases count from it, because a slow reply
	// must not stretch them.
	Sent time.Time
}

// Lease returns the lease of grant i.
func (g Grants) Lease(i int) lease.Lease {
	return lease.Lease{Key: g.Reqs[i].Key, Owner: g.Reqs[i].Owner, Token: g.Answers[i].Token}
}

// Request asks for key under a fresh owner. Each attempt has one of its own, so that a late
// statement of an old attempt never touches what a newer one holds.
func (w *Want) Request(key string) lease.AcquireRequest {
	return lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: w.TTL, Note: w.Note}
}

// Call is one call for keys, in order and each once.
type Call struct {
	Keys []string
	Want Want

	asked bool
	first [1]lease.AcquireRequest // most calls ask once, for one key
}

// Requests returns a new request for each key.
func (c *Call) Requests() []lease.AcquireRequest {
	reqs := c.first[:]
	if c.asked || len(c.Keys) > 1 { // an earlier request may still be read after its call has returned
		reqs = make([]lease.AcquireRequest, len(c.Keys))
	}
	c.asked = true
	for i, key := range c.Keys {
		reqs[i] = c.Want.Request(key)
	}
	return reqs
}

// Passing reports whether err is worth waiting for: the key is held, or the database is overloaded.
func Passing(err error) bool {
	busy := errors.Is(err, lease.ErrBusy) && !errors.Is(err, lease.ErrUnknown)
	return busy || errors.Is(err, lease.ErrHeld)
}

// Name is what an error calls the keys: a single one by itself.
func Name(keys []string) any {
	if len(keys) == 1 {
		return keys[0]
	}
	return keys
}
