package locktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rowlockdb/rowlock/lease"
)

var historyProperties = []property{
	{"concurrent calls could have happened one after another", linearizable},
}

// linearizable records what 8 clients do to 3 keys, while leases are made to expire, and asks
// whether some order of it all would have been right.
func linearizable(r *rig) {
	r.there()
	const clients = 8
	seed, start := rand.Uint64(), time.Now()
	expiry, done := make(chan string), make(chan struct{})
	all, under := make([]*client, clients+1), new(sync.RWMutex)
	for i := range all {
		all[i] = &client{rig: r, id: i, start: start, expiry: expiry, under: under, rand: rand.New(rand.NewPCG(seed, uint64(i)))}
	}
	defer func() { <-done }() // no call goes on after the property has ended
	go func() {
		defer close(done)
		together(clients, func(i int) {
			for range r.h.scale(48) {
				all[i].act()
			}
		})
	}()
	all[clients].expireOnDemand(done)
	var history []porcupine.Operation
	var failed []error
	for _, c := range all {
		history, failed = append(history, c.history...), append(failed, c.failed...)
	}
	if len(failed) > len(history) {
		r.Errorf("%d of %d calls failed: %v", len(failed), len(failed)+len(history), failed[0])
	}
	r.judge(history, seed)
}

// judge checks each key by itself: a history is right if that of every key is.
func (r *rig) judge(history []porcupine.Operation, seed uint64) {
	r.Helper()
	byKey := make(map[string][]porcupine.Operation)
	for _, op := range history {
		key := op.Input.(call).Key
		byKey[key] = append(byKey[key], op)
	}
	for key, ops := range byKey {
		verdict := porcupine.CheckOperationsTimeout(lockModel(), ops, r.h.limit())
		if verdict != porcupine.Ok {
			slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
			var text strings.Builder
			for _, op := range ops {
				fmt.Fprintln(&text, describe(op))
			}
			r.Errorf("no order of these %d calls on %q makes sense (%s, seed %d):\n%s", len(ops), key, verdict, seed, &text)
		}
	}
}

// client is one of several that use a few keys at random, and records its calls.
type client struct {
	*rig
	id      int
	start   time.Time
	rand    *rand.Rand
	expiry  chan string // keys whose lease is to expire
	under   *sync.RWMutex
	terms   []lease.Lease
	history []porcupine.Operation
	failed  []error
}

func (c *client) act() {
	switch dice := c.rand.IntN(100); {
	case dice < 30 || len(c.terms) == 0:
		c.acquire(lease.Lease{Key: c.anyKey(), Owner: lease.NewOwner()})
	case dice < 45:
		c.acquire(c.anyTerm())
	case dice < 60:
		c.renew(c.anyTerm())
	case dice < 75:
		c.renewTooLate(c.anyTerm())
	case dice < 90:
		c.release(c.anyTerm())
	default:
		l := c.anyTerm()
		l.Token = 0
		c.release(l)
	}
}

// renewTooLate has the lease expire, if it is one, and renews it at the same time and again.
func (c *client) renewTooLate(l lease.Lease) {
	select {
	case c.expiry <- l.Key:
	case <-c.ctx.Done():
	}
	c.renew(l)
	c.renew(l)
}

func (c *client) anyKey() string { return fmt.Sprint("k", c.rand.IntN(3)) }

// anyTerm is one of the last few this client asked for, granted or not.
func (c *client) anyTerm() lease.Lease {
	recent := c.terms[max(0, len(c.terms)-4):]
	return recent[c.rand.IntN(len(recent))]
}

func (c *client) acquire(l lease.Lease) {
	c.terms = append(c.terms, l)
	l.Token = 0
	c.record(call{acquire, l}, func() (reply, error) {
		a, err := acquireOne(c.ctx, c.here, request(l.Key, l.Owner))
		if err == nil && a.Granted {
			c.terms[len(c.terms)-1].Token = a.Token
		}
		return reply{yes: a.Granted, token: a.Token, vague: !a.Granted && a.Holder.Remaining <= 0}, err
	})
}

func (c *client) renew(l lease.Lease) {
	c.record(call{renew, l}, func() (reply, error) {
		a, err := renewOne(c.ctx, c.there(), l)
		return reply{yes: a.Outcome == lease.Extended, vague: a.Outcome == lease.Busy}, err
	})
}

func (c *client) release(l lease.Lease) {
	c.record(call{release, l}, func() (reply, error) {
		a, err := releaseOne(c.ctx, c.here, l)
		return reply{yes: !a.Gone}, err
	})
}

// expireOnDemand runs on the test's own goroutine, where hooks belong.
func (c *client) expireOnDemand(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case key := <-c.expiry:
			c.record(call{expire, lease.Lease{Key: key}}, func() (reply, error) {
				c.expire(key)
				return reply{yes: true}, nil
			})
		}
	}
}

// apart keeps expiries and calls from being under way together.
func (c *client) apart(v verb) (end func()) {
	if v == expire {
		c.under.Lock()
		return c.under.Unlock
	}
	c.under.RLock()
	return c.under.RUnlock
}

// record adds a call to the history. One that failed without doubt has not happened and is left
// out.
func (c *client) record(in call, do func() (reply, error)) {
	sent := time.Since(c.start).Nanoseconds()
	if c.h.Steady {
		defer c.apart(in.verb)()
	}
	out, err := do()
	returned := time.Since(c.start).Nanoseconds()
	switch {
	case errors.Is(err, lease.ErrUnknown):
		out, returned = reply{unknown: true}, never
	case err != nil:
		c.failed = append(c.failed, fmt.Errorf("%v %q: %w", in.verb, in.Key, err))
		return
	}
	c.history = append(c.history, porcupine.Operation{ClientId: c.id, Input: in, Output: out, Call: sent, Return: returned})
}
