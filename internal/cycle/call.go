// Package cycle finds calls that wait for each other. A call that holds something and waits for
// more records both in the store, reads which chains its own waits lead to, and ends with a
// [lease.DeadlockError] if it is the last of a cycle that began to wait. A call that holds nothing
// writes nothing.
//
// # Why no call is ended that is in no cycle
//
// A record counts until it expires, soon after its last heartbeat, and as long as the rows of its
// keys have the tokens that it names: of what its chain holds, and of what it waits for. So a
// record that a grant has left behind leads nowhere, even after the key was released again.
//
// A chain counts in a cycle only if its record was extended since this process first read it. The
// statement of a call that has ended, carried out late, makes a record that no call extends, or
// extends one to a moment that has passed. A reading whose answer comes late, because the process
// was stopped, is dropped.
//
// A call that stops waiting without a grant erases its record before it returns, or waits until it
// has expired.
//
// # Why one call of a cycle is ended, and no more
//
// Chains are ordered by when they began to wait, by the store's clock, and by name. Both are fixed
// by a chain's first record. If that took long, the chain gets another name and is recorded anew.
package cycle

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

const (
	// patience is how long a call waits before it is recorded: most waits are over by then.
	patience = time.Second
	// every is the time between two rounds of records and readings. A cycle is found in the third
	// round after its last call was recorded, at the latest.
	every = 300 * time.Millisecond
	// life is how long a record counts after its last heartbeat. Some rounds may fail or be slow.
	life = 1500 * time.Millisecond
	// prompt is within what a chain's first record is carried out, or tried again with another
	// name, at most rankTries times.
	prompt    = 100 * time.Millisecond
	rankTries = 3
	// eraseTries is how often records are erased in vain before they are left to a sweep.
	eraseTries = 10
	// renamed is how long a chain keeps its name. Two clocks do not drift apart by a noticeable
	// part of life meanwhile.
	renamed = time.Minute
)

// Holder knows what a call holds by its context.
type Holder interface {
	// Held returns the leases that are held at the moment.
	Held() []lease.Lease
}

// Call is one call that waits.
type Call struct {
	// Holder is nil if the call holds nothing.
	Holder Holder
	// Wants are the keys that it waits for, and Shares those that it is to share beside others.
	// They do not change.
	Wants, Shares []string
	// Since is when it began.
	Since time.Time
	// Broken receives the cycle that the call is to end. It has room for one.
	Broken chan error

	told bool // that it is broken
	recording
}

// Idle is in a ctx whose call waits by itself, as a candidate's: only what the ctx holds counts.
type Idle struct{ Candidate bool }

// In returns ctx with it.
func (i Idle) In(ctx context.Context) context.Context { return context.WithValue(ctx, Idle{}, i) }

// recording is what the store has, or may have, of a call's chain.
type recording struct {
	chain  lease.Caller  // recorded, or about to be
	made   time.Time     // when a record of the chain was first acknowledged
	delay  time.Duration // how old its Waited was by then
	alive  time.Time     // when the record has certainly expired
	unsure bool          // the last record was not acknowledged, and may come late
	before []named       // its former names, whose records may not have expired
	tries  int           // first records, of one name each
	// uncertain says that some record was not acknowledged.
	uncertain bool
}

// named is a chain by a name that it has no more.
type named struct {
	chain lease.Caller
	alive time.Time
}

// recorded reports whether the store may have a record of the call.
func (r *recording) recorded() bool { return !r.chain.ID.IsZero() }

// record makes the call's chain, and returns former ones whose records have expired. It reports
// false if the call holds nothing any more.
//
// A chain gets another name after a record that was not acknowledged. That record may come late,
// and even after all of that name were erased. Then it is the only one: no other extends it, and a
// record that is not extended is part of no cycle. The others get another name from time to time,
// because their expiry is bound to this process's clock; see lease.Graph.
func (c *Call) record() (expired []lease.Caller, holds bool) {
	for len(c.before) > 0 && time.Now().After(c.before[0].alive) {
		expired = append(expired, c.before[0].chain)
		c.before = c.before[1:]
	}
	if !c.made.IsZero() && !c.unsure && time.Since(c.made) < renamed {
		return expired, true
	}
	if c.recorded() {
		c.before = append(c.before, named{c.chain, c.alive})
	}
	held := c.Holder.Held()
	c.chain = lease.Caller{ID: lease.NewOwner(), Holds: held, Wants: c.Wants, Shares: c.Shares}
	c.made = time.Time{}
	return expired, len(held) > 0
}

// sent notes that a record was sent, and whether that was acknowledged.
//
// The store computes when the chain began to wait from Waited, which may have been old by then: the
// process was stopped, or the statement waited for others. Such a chain would rank behind calls
// that began later, and gets another name, a few times.
func (c *Call) sent(at time.Time, acknowledged bool) {
	if acknowledged && c.made.IsZero() {
		c.tries++
		c.delay = time.Since(c.Since) - c.chain.Waited
		if c.delay < prompt || c.tries%rankTries == 0 {
			c.made = at
		}
	}
	c.alive = at.Add(life + c.delay)
	c.unsure = !acknowledged
	c.uncertain = c.uncertain || c.unsure
}

// names returns the chain by all its names, and when the last of their records has expired.
func (r *recording) names() (all []lease.Caller, alive time.Time) {
	all, alive = []lease.Caller{r.chain}, r.alive
	for _, b := range r.before {
		all = append(all, b.chain)
		if b.alive.After(alive) {
			alive = b.alive
		}
	}
	return all, alive
}

// Begin watches a call that waits.
func (w *Watch) Begin(c *Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[c] = struct{}{}
	if !w.startLocked() && c.Holder != nil {
		select {
		case w.loop.kick <- struct{}{}: // the loop may sleep longer than this call's patience
		default:
		}
	}
}

// startLocked starts the loop unless it runs.
func (w *Watch) startLocked() bool {
	if w.loop.running || w.loop.stopped {
		return false
	}
	w.loop.running = true
	w.loop.Go(w.run)
	return true
}

// End forgets a call. If its keys were not granted, its chain goes on with what it holds and waits
// for nothing: no process may see it waiting after End has returned. That takes up to the life of a
// record, but only while the store fails. A grant gives the keys new tokens, and so ends the edges,
// unless a record comes late.
func (w *Watch) End(c *Call, granted bool) {
	w.mu.Lock()
	delete(w.calls, c)
	recorded := c.recorded()
	w.mu.Unlock()
	if !recorded {
		return
	}
	w.writing <- struct{}{} // a record under way must not come after its removal, or after a release
	<-w.writing
	chains, alive := c.names()
	if (!granted || c.uncertain) && w.erase(chains, alive) {
		return
	}
	w.mu.Lock()
	w.spent.chains = append(w.spent.chains, chains...)
	w.startLocked() // no other call may wait
	w.mu.Unlock()
}

// erase returns when the records are gone, or have expired: then it reports false.
func (w *Watch) erase(chains []lease.Caller, alive time.Time) (gone bool) {
	for {
		ctx, cancel := context.WithDeadline(context.Background(), alive)
		err := w.Graph.Erase(ctx, chains)
		cancel()
		left := time.Until(alive)
		if err == nil || left <= 0 || errors.Is(err, lease.ErrUnsupported) {
			return err == nil
		}
		time.Sleep(min(left, every/3))
	}
}
