package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// retry is how often a call that waits to share a key tries to join the reader group that may
	// hold it: no release tells of a group that was made.
	retry = 250 * time.Millisecond
	// intentLasts is how long a writer's intent lives, and intentEvery how often it is repeated: a
	// caller that vanishes keeps no readers out for longer.
	intentLasts = 5 * time.Second
	intentEvery = intentLasts / 4
)

// Share tries once to share all of a call's keys: it joins the reader groups that hold them,
// and makes groups of the free ones. Of a part it keeps nothing.
func (a *Asker) Share(ctx context.Context, c *Call) (Grants, error) { return a.share(ctx, c, true) }

// share is Share. Unless it may make groups, a free key is told as one that is held.
func (a *Asker) share(ctx context.Context, c *Call, makes bool) (Grants, error) {
	if IsClosed(a.Closed) {
		return Grants{}, Closed(c.Keys)
	}
	g := Grants{Sent: time.Now(), Shared: true}
	reqs := make([]lease.AcquireRequest, len(c.Keys))
	for i, key := range c.Keys {
		reqs[i] = c.Want.Request(key)
		g.Each = append(g.Each, Grant{reqs[i], lease.Acquired{Granted: true, Unknown: true}})
	}
	whole := false
	defer func() { // also after a panic in a hook, or in a driver that may have shared the keys
		if !whole {
			a.Discard(ctx, g)
		}
	}()
	for i, answer := range a.Store.Share(ctx, reqs) {
		g.Each[i].Answer = answer
	}
	free, err := a.joined(ctx, c, g)
	switch {
	case err != nil || len(free) == 0:
	case !makes:
		err = &freeError{&lease.HeldError{Key: free[0].Req.Key}}
	default:
		if err = a.makeGroups(ctx, c, free); err != nil && ctx.Err() != nil {
			a.Orphans.AddLeases(g.only(func(of *Grant) bool { return of.Answer.Granted }).Leases()...)
			g = Grants{} // to give them up may take adapter.Timeout more, and Downgrade has taken it
		}
	}
	if whole = err == nil; !whole {
		return Grants{}, err
	}
	return g, nil
}

// joined returns the requests for keys that are free, or why another was refused.
func (a *Asker) joined(ctx context.Context, c *Call, g Grants) (free []*Grant, err error) {
	var orphans []lease.Lease
	for i := range g.Each {
		answer := &g.Each[i].Answer
		if answer.Err != nil || answer.Unknown && !answer.Granted {
			if !denied(answer.Err) {
				orphans = append(orphans, g.Lease(i))
			}
			if err == nil || answer.Err == nil || err.Error() != answer.Err.Error() {
				err = oneline.Join(err, answer.Err)
			}
		}
		if answer.Err == nil && answer.Possible {
			free = append(free, &g.Each[i])
		}
	}
	a.Orphans.AddLeases(orphans...)
	refused := g.only(func(g *Grant) bool { return !g.Answer.Granted && !g.Answer.Possible })
	if err == nil && len(refused.Each) > 0 {
		err = a.contended(ctx, c, refused)
	}
	return free, err
}

// denied reports whether the user lacks a right or the tables lack members: then no member was
// made, and none can be removed.
func denied(err error) bool {
	return (errors.Is(err, lease.ErrPrivilege) || errors.Is(err, lease.ErrNoSchema)) &&
		!errors.Is(err, lease.ErrUnknown)
}

// makeGroups takes the keys that are free, makes reader groups of them, and answers their requests
// so.
func (a *Asker) makeGroups(ctx context.Context, c *Call, free []*Grant) error {
	sub := &Call{Want: c.Want}
	for _, of := range free {
		sub.Keys = append(sub.Keys, of.Req.Key)
	}
	taken, err := a.Ask(ctx, sub, sub.Requests())
	if err == nil {
		taken, err = a.Downgrade(ctx, taken)
	}
	for n := range taken.Each { // none after an error
		*free[n] = taken.Each[n]
	}
	return err
}

// Downgrade makes reader groups of keys that were granted. What it cannot make one is the orphan
// cleaner's. The end of ctx is no reason to fail: the keys are the call's already.
func (a *Asker) Downgrade(ctx context.Context, g Grants) (Grants, error) {
	ctx, cancel := outlast(ctx)
	defer cancel()
	reqs := make([]lease.RenewRequest, len(g.Each))
	for i := range reqs {
		reqs[i] = lease.RenewRequest{Lease: g.Lease(i), TTL: g.Each[i].Req.TTL}
	}
	g.Shared = true
	lost := g.Leases()
	defer func() { a.Orphans.AddLeases(lost...) }() // also after a panic in a driver
	var err error
	for i, answer := range a.Store.Downgrade(ctx, reqs) {
		switch {
		case answer.Err != nil:
			err = oneline.Join(err, answer.Err)
		case answer.Outcome != lease.Extended:
			err = oneline.Join(err, fmt.Errorf("%w: %q was taken and lost again before it was shared",
				lease.ErrBusy, reqs[i].Key))
		}
	}
	if err != nil {
		return Grants{}, err
	}
	lost = nil
	return g, nil
}

// outlast returns a ctx that ends adapter.Timeout after ctx does.
func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(adapter.Timeout, cancel)
	})
	return longer, func() { stop(); cancel() }
}

// reader is a call that waits to share its keys. It joins their groups beside the queue, because
// readers need no order among themselves; in a fair client the head of the queue asks for the keys
// if it cannot join.
type reader struct {
	Waiter
	asker  *Asker
	call   *Call
	leader *leader // of its key's group, until its first attempt has ended
	joined bool    // the grant came from beside the queue
}

// waitToShare is Wait for a call that shares its keys. It tries beside the queue first: a thousand
// readers join in one statement.
func (a *Asker) waitToShare(ctx context.Context, q Queue, c *Call) (Grants, error) {
	a.leaders.count(c.Keys[0], 1)
	defer a.leaders.count(c.Keys[0], -1)
	g, leader, err := a.shareFirst(ctx, c)
	defer leader.end()
	switch {
	case err == nil: // whether or not ctx has ended meanwhile: a grant that races with it wins
		return g, nil
	case !passing(err) || ctx.Err() != nil:
		return Grants{}, cut(ctx, err)
	}
	w, attempt, err := q.Join(ctx, c)
	if err != nil {
		return Grants{}, err
	}
	if !attempt {
		leader.end()
	}
	return a.stay(ctx, c, &reader{Waiter: w, asker: a, call: c, leader: leader}, attempt)
}

func (r *reader) Attempt(ctx context.Context) (Grants, error) {
	defer r.leader.end()
	g, err := r.asker.Share(ctx, r.call)
	r.joined = err == nil
	if r.joined || !r.asker.Fair || !passing(err) || ctx.Err() != nil {
		return g, err
	}
	return r.Waiter.Attempt(ctx)
}

func (r *reader) Won(ctx context.Context, g Grants) {
	if r.joined {
		r.asker.Discard(ctx, r.Leave(ctx).Grant)
		return
	}
	r.Waiter.Won(ctx, g)
}

// intent is what a call does while it waits for a key that readers hold, or to be one of them.
type intent struct {
	tick     *time.Ticker
	ticks    <-chan time.Time // its C, when there is something to do
	waiter   lease.Owner      // whose intent is noted; zero before it is
	intended time.Time        // for the last time
}

// refused begins to look out for readers, after an attempt that was lost.
func (w *wait) refused(ctx context.Context, err error) {
	if w.tick == nil && w.asker.Store.Shares() == nil {
		w.tick = time.NewTicker(retry)
		w.ticks = w.tick.C
	}
	readers := w.call.Any && slices.ContainsFunc(w.call.Keys, func(key string) bool {
		_, here := inTheWay(err, key)
		return here != nil && here.Shared
	})
	var held *lease.HeldError
	if (readers || errors.As(err, &held) && held.Shared) && !w.call.Want.Shared {
		w.intend(ctx)
	}
}

// ticked has a call that shares ask. Another notes its intent while it is the first that waits for
// readers: what the last poll has read says so, and nothing is sent before.
func (w *wait) ticked(ctx context.Context) (attempt bool) {
	if !w.call.Want.Shared && w.Seen().Shared {
		if at, _ := w.Position(); at.Ahead == 0 {
			w.intend(ctx)
		}
	}
	return w.call.Want.Shared
}

// intend notes the intent, unless it was noted a moment ago. An error only delays this caller: the
// keys are asked for all the same.
func (w *wait) intend(ctx context.Context) {
	if time.Since(w.intended) < intentEvery {
		return
	}
	if w.waiter.IsZero() {
		w.waiter = lease.NewOwner()
	}
	w.intended = time.Now()
	_ = w.asker.Store.Intend(ctx, w.waiter, w.call.Keys, intentLasts)
}

// unintend ends what refused began. An intent that it cannot remove expires. Its time is short: the
// call may have spent adapter.Timeout on leaving its queue.
func (w *wait) unintend(ctx context.Context) {
	if w.tick != nil {
		w.tick.Stop()
	}
	if !w.waiter.IsZero() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adapter.Timeout/4)
		defer cancel()
		_ = w.asker.Store.Intend(ctx, w.waiter, w.call.Keys, 0)
	}
}
