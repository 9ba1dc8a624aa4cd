package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// retry is how often a call that waits to share a key tries to join the team that may hold it:
	// no release tells of a team that was made.
	retry = 250 * time.Millisecond
	// intentLasts is how long a writer's intent lives, and intentEvery how often it is repeated: a
	// caller that vanishes keeps no readers out for longer.
	intentLasts = 5 * time.Second
	intentEvery = intentLasts / 4
)

// Share tries once to share all of a call's keys: it joins the teams that hold them, and makes
// teams of the free ones. Of a part it keeps nothing.
func (a *Asker) Share(ctx context.Context, c *Call) (Grants, error) { return a.share(ctx, c, true) }

// share is Share. Unless it may make teams, a free key is told as one that is held.
func (a *Asker) share(ctx context.Context, c *Call, makes bool) (Grants, error) {
	if a.IsClosed() {
		return Grants{}, Closed(c.Keys)
	}
	g := Grants{Sent: time.Now(), Shared: true}
	reqs := make([]lease.AcquireRequest, len(c.Keys))
	for i, key := range c.Keys {
		reqs[i] = c.Want.Request(key)
	}
	g.Each = pair(nil, reqs, a.Store.Share(ctx, reqs))
	whole := false
	defer func() { // also after a panic in a hook
		if !whole {
			a.Discard(ctx, g)
		}
	}()
	free, err := a.joined(ctx, c, g)
	switch {
	case err != nil || len(free) == 0:
	case !makes:
		err = &freeError{&lease.HeldError{Key: free[0].Req.Key}}
	default:
		err = a.makeGroups(ctx, c, free)
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
		if answer.Err != nil || answer.Doubtful && !answer.Granted {
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
	if err != nil {
		return nil, err
	}
	return free, nil
}

// denied reports whether the user lacks a right: then no member was made, and none can be removed.
func denied(err error) bool {
	return errors.Is(err, lease.ErrPrivilege) && !errors.Is(err, lease.ErrUnknown)
}

// makeTeams takes the keys that are free, makes teams of them, and answers their requests so.
func (a *Asker) makeGroups(ctx context.Context, c *Call, free []*Grant) error {
	sub := &Call{Want: c.Want}
	for _, of := range free {
		sub.Keys = append(sub.Keys, of.Req.Key)
	}
	taken, err := a.Ask(ctx, sub, sub.Requests())
	if err == nil {
		taken, err = a.Downgrade(ctx, taken)
	}
	if err != nil {
		return err
	}
	for n, of := range free {
		*of = taken.Each[n]
	}
	return nil
}

// Downgrade makes teams of keys that were granted. What it cannot make one is the orphan cleaner's.
// The end of ctx is no reason to fail: the keys are the call's already.
func (a *Asker) Downgrade(ctx context.Context, g Grants) (Grants, error) {
	ctx, cancel := outlast(ctx)
	defer cancel()
	reqs := make([]lease.RenewRequest, len(g.Each))
	for i := range reqs {
		reqs[i] = lease.RenewRequest{Lease: g.Lease(i), TTL: g.Each[i].Req.TTL}
	}
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
	team := g
	team.Shared = true
	if err != nil {
		a.Orphans.AddLeases(append(g.Leases(), team.Leases()...)...)
		return Grants{}, err
	}
	return team, nil
}

// outlast returns a ctx that ends seam.Timeout after ctx does.
func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(seam.Timeout, cancel)
	})
	return longer, func() { stop(); cancel() }
}

// writerIntent is what a call does while it waits for a key that readers hold, or to be one of
// them.
type writerIntent struct {
	tick     *time.Ticker
	waiter   lease.Owner // that wishes; zero before it does
	intended time.Time   // for the last time
	apart    bool        // the grant was not the place's

	leader *leader // of its key's team, until its first bid has ended
}

// C ticks when there is something to do; it is nil, and never does, if there is not.
func (s *writerIntent) C() <-chan time.Time {
	if s.tick == nil {
		return nil
	}
	return s.tick.C
}

// attempt asks for the keys. A call that shares joins beside the queue, because readers need no
// order among themselves; in a fair client its turn comes at last if it cannot.
func (w *wait) attempt(ctx context.Context) (Grants, error) {
	if !w.call.Want.Shared {
		return w.place.Attempt(ctx)
	}
	defer w.leader.end()
	g, err := w.asker.Share(ctx, w.call)
	switch w.apart = err == nil; {
	case w.apart:
		return g, nil
	case !w.asker.Fair || !passing(err) || ctx.Err() != nil:
		return Grants{}, err
	}
	return w.place.Attempt(ctx)
}

// refused begins to look out for readers, after a bid that was lost.
func (w *wait) refused(ctx context.Context, err error) {
	if w.tick == nil && w.asker.Store.Shares() == nil {
		w.tick = time.NewTicker(retry)
	}
	var held *lease.HeldError
	if errors.As(err, &held) && held.Shared && !w.call.Want.Shared {
		w.intend(ctx)
	}
}

// ticked has a call that shares bid. Another wishes while it is the first that waits for readers:
// what the last poll has read says so, and nothing is sent before.
func (w *wait) ticked(ctx context.Context) (bid bool) {
	if w.call.Want.Shared {
		return true
	}
	if w.place.Seen().Shared {
		if at, _ := w.place.Position(); at.Ahead == 0 {
			w.intend(ctx)
		}
	}
	return false
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
	_ = w.asker.Store.Wish(ctx, w.waiter, w.call.Keys, intentLasts)
}

// unintend ends what refused began. A wish that it cannot remove dies by itself.
func (w *wait) unintend(ctx context.Context) {
	if w.tick != nil {
		w.tick.Stop()
	}
	if !w.waiter.IsZero() {
		_ = w.asker.Store.Wish(context.WithoutCancel(ctx), w.waiter, w.call.Keys, 0)
	}
}
