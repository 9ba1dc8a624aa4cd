package queue

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rowlockdb/rowlock/internal/cycle"
	"github.com/rowlockdb/rowlock/lease"
)

// Want is what one call asks for each of its keys.
type Want struct {
	TTL      time.Duration
	Note     string // as it is stored: identity and note
	Priority int
	// Shared: the keys are shared with others that want the same.
	Shared bool
	// Quiet: the lock is the client's own, and Contended is not called.
	Quiet bool
	// Holder says what the call holds while it waits, nil if nothing.
	Holder cycle.Holder
	// Show is called when the call begins to wait for key and when its position changes. May be
	// nil.
	Show func(key string, p Position)
}

// Position is what a waiter can be told.
type Position struct {
	// Ahead is how many waiters stand before this one.
	Ahead int
	// Identity is that of the holder's client, Holder the holder's note, Remaining how long its lease
	// still lasts.
	Identity, Holder string
	Remaining        time.Duration
	// Since is how long the call has waited.
	Since time.Duration
}

// Seen is what the polls have read of a key that a call waits for.
type Seen struct {
	// Held: the key had a holder whose lease had not expired. Expired: it had one whose lease had.
	// Otherwise the key was free, or no poll has read it since the call's last attempt.
	Held, Expired bool
	// Token is that of the last grant, or 0 if polls do not read it. Note is its holder's.
	Token lease.Token
	Note  string
	// Shared: readers hold it.
	Shared bool
	// Remaining is how long the lease still lasts; negative: how long ago it expired.
	Remaining time.Duration
}

// holder describes the holder of key.
func (s Seen) holder(key string) *lease.HeldError { return heldBy(key, s.Note, s.Remaining) }

// heldBy describes the holder of key by its note as it is stored.
func heldBy(key, stored string, remaining time.Duration) *lease.HeldError {
	held := &lease.HeldError{Key: key, Remaining: remaining}
	held.Identity, held.Note = lease.SplitNote(stored)
	return held
}

// observedOf is what a lost attempt tells of the holder: nothing, if held is nil.
func observedOf(held *lease.HeldError) observed {
	if held == nil {
		return observed{}
	}
	return observed{
		Remaining: held.Remaining, Note: lease.StoredNote(held.Identity, held.Note),
	}
}

// Grant is a request with its answer.
type Grant struct {
	Req    lease.AcquireRequest
	Answer lease.Acquired
}

// Grants are keys that were granted together, each to an owner of its own. They never travel with
// an error: of a call that has failed there are none.
type Grants struct {
	Each []Grant
	// Sent is the moment before the request was sent. Leases count from it, because a slow reply
	// must not stretch them.
	Sent time.Time
	// Shared: each owner is a member of the reader group that holds its key.
	Shared bool
	// HandedOver: the holder before has given the key to the requester.
	HandedOver bool
}

// only returns the part of g that f selects.
func (g Grants) only(f func(*Grant) bool) Grants {
	part := Grants{Sent: g.Sent, Shared: g.Shared}
	for i := range g.Each {
		if f(&g.Each[i]) {
			part.Each = append(part.Each, g.Each[i])
		}
	}
	return part
}

// Lease returns the lease of grant i.
func (g Grants) Lease(i int) lease.Lease {
	of := &g.Each[i]
	return lease.Lease{
		Key: of.Req.Key, Owner: of.Req.Owner, Token: of.Answer.Token, Shared: g.Shared,
	}
}

// Leases returns the leases of all grants.
func (g Grants) Leases() []lease.Lease {
	leases := make([]lease.Lease, len(g.Each))
	for i := range leases {
		leases[i] = g.Lease(i)
	}
	return leases
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
	// N is how many of the keys the call wants; 0: all.
	N int
	// Any: the call waits for whichever N of the keys is released first, and N is 1.
	Any bool
	// Within: the keys are slots of this limit.
	Within *lease.Limit

	asked bool
	first [1]lease.AcquireRequest // most calls ask once, for one key
	room  [1]Grant                // for what that comes to
}

// Requests returns a new request for each key.
func (c *Call) Requests() []lease.AcquireRequest {
	if c.N > 0 {
		return c.Some(c.Keys)
	}
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

// Some returns a new request for each of keys in a random order, so that calls for any of the same
// keys do not all begin with the same one.
func (c *Call) Some(keys []string) []lease.AcquireRequest {
	reqs := make([]lease.AcquireRequest, len(keys))
	for to, from := range rand.Perm(len(keys)) {
		reqs[to] = c.Want.Request(keys[from])
	}
	return reqs
}

// passing reports whether err is worth waiting for: the key is held, or the database is overloaded.
func passing(err error) bool {
	busy := errors.Is(err, lease.ErrBusy) && !errors.Is(err, lease.ErrUnknown)
	return busy || errors.Is(err, lease.ErrHeld)
}

// nameOf is what an error calls the keys: a single one by itself.
func nameOf(keys []string) any {
	if len(keys) == 1 {
		return keys[0]
	}
	return keys
}

// inTheWay returns the first key that is held, and key itself if it is.
func inTheWay(err error, key string) (first, here *lease.HeldError) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, e := range all {
		var held *lease.HeldError
		if !errors.As(e, &held) {
			continue
		}
		if first == nil {
			first = held
		}
		if held.Key == key {
			here = held
		}
	}
	return first, here
}
