package acquire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// retry is how often a call that waits to share a key tries to join the team that may hold it:
	// no release tells of a team that was made.
	retry = 250 * time.Millisecond
	// wishFor is how long a wish lives, and wishEvery how often it is repeated: a caller that
	// vanishes keeps no readers out for longer.
	wishFor   = 5 * time.Second
	wishEvery = wishFor / 4
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
	for _, key := range c.Keys {
		g.Reqs = append(g.Reqs, c.Want.Request(key))
	}
	g.Answers = a.Store.Share(ctx, g.Reqs)
	free, err := a.joined(ctx, g, c.Want.Quiet)
	switch {
	case err != nil || len(free) == 0:
	case !makes:
		err = &freeError{&lease.HeldError{Key: g.Reqs[free[0]].Key}}
	default:
		err = a.makeTeams(ctx, c, &g, free)
	}
	if err != nil {
		a.leave(ctx, g)
		return Grants{}, err
	}
	return g, nil
}

// joined returns which keys are free, and why another was refused.
func (a *Asker) joined(ctx context.Context, g Grants, quiet bool) (free []int, err error) {
	for i := range g.Answers {
		answer := &g.Answers[i]
		if answer.Err != nil || answer.Doubtful && !answer.Granted {
			if !denied(answer.Err) {
				a.Orphans.AddMember(g.Reqs[i].Key, g.Reqs[i].Owner)
			}
			if err == nil || answer.Err == nil || err.Error() != answer.Err.Error() {
				err = oneline.Join(err, answer.Err)
			}
		}
		if answer.Err == nil && answer.Possible {
			free = append(free, i)
		}
	}
	refused := func(i int) bool { return !g.Answers[i].Granted && !g.Answers[i].Possible }
	for i := range g.Answers {
		if err == nil && refused(i) {
			return nil, a.contended(ctx, only(g, refused), quiet)
		}
	}
	return free, err
}

// denied reports whether the user lacks a right: then no member was made, and none can be removed.
func denied(err error) bool {
	return errors.Is(err, lease.ErrPrivilege) && !errors.Is(err, lease.ErrUnknown)
}

// only returns the part of g that f selects.
func only(g Grants, f func(i int) bool) Grants {
	part := Grants{Sent: g.Sent, Shared: g.Shared}
	for i := range g.Reqs {
		if f(i) {
			part.Reqs = append(part.Reqs, g.Reqs[i])
			part.Answers = append(part.Answers, g.Answers[i])
		}
	}
	return part
}

// makeTeams takes the free keys of g and makes teams of them.
func (a *Asker) makeTeams(ctx context.Context, c *Call, g *Grants, free []int) error {
	sub := &Call{Want: c.Want}
	for _, i := range free {
		sub.Keys = append(sub.Keys, g.Reqs[i].Key)
	}
	taken, err := a.Ask(ctx, sub, sub.Requests())
	if err == nil {
		taken, err = a.Downgrade(ctx, taken)
	}
	if err != nil {
		return err
	}
	for n, i := range free {
		g.Reqs[i], g.Answers[i] = taken.Reqs[n], taken.Answers[n]
	}
	return nil
}

// leave gives up what was joined of a call that has not got all.
func (a *Asker) leave(ctx context.Context, g Grants) {
	part := only(g, func(i int) bool { return g.Answers[i].Granted })
	leases := make([]lease.Lease, len(part.Reqs))
	for i := range leases {
		leases[i] = part.Lease(i)
	}
	if len(leases) > 0 {
		a.GiveUp(ctx, leases)
	}
}

// Downgrade makes teams of keys that were granted. What it cannot make one is the orphan cleaner's.
func (a *Asker) Downgrade(ctx context.Context, g Grants) (Grants, error) {
	reqs := make([]lease.RenewRequest, len(g.Reqs))
	for i := range reqs {
		reqs[i] = lease.RenewRequest{Lease: g.Lease(i), TTL: g.Reqs[i].TTL}
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
	g.Shared = true
	if err == nil {
		return g, nil
	}
	for i := range g.Reqs {
		a.Orphans.AddMember(g.Reqs[i].Key, g.Reqs[i].Owner)
		a.Orphans.Add(g.Reqs[i].Key, g.Reqs[i].Owner)
	}
	return Grants{}, err
}

// wishes is what a call does while it waits for a key that readers hold, or to be one of them.
type wishes struct {
	tick   *time.Ticker
	waiter lease.Owner // that wishes; zero before it does
	wished time.Time   // for the last time
	apart  bool        // the grant was not the place's

	founder *founder // of its key's team, until its first bid has ended
}

// C ticks when there is something to do; it is nil, and never does, if there is not.
func (s *wishes) C() <-chan time.Time {
	if s.tick == nil {
		return nil
	}
	return s.tick.C
}

// bid asks for the keys. A call that shares joins beside the queue, because readers need no order
// among themselves; in a fair client its turn comes at last if it cannot.
func (w *wait) bid(ctx context.Context) (Grants, error) {
	if !w.call.Want.Shared {
		return w.place.Bid(ctx)
	}
	defer w.founder.end()
	g, err := w.asker.Share(ctx, w.call)
	if w.apart = err == nil; w.apart || !w.asker.Fair || !Passing(err) || ctx.Err() != nil {
		return g, err
	}
	return w.place.Bid(ctx)
}

// refused begins to look out for readers, after a bid that was lost.
func (w *wait) refused(ctx context.Context, err error) {
	mix := w.call.Mix
	if w.tick == nil && (mix != nil || w.asker.Store.Shares() == nil) {
		w.tick = time.NewTicker(retry)
	}
	if mix != nil {
		w.tick.Reset(mix.pauses())
	}
	var held *lease.HeldError
	if errors.As(err, &held) && held.Shared && !w.call.shares(held.Key) {
		w.wish(ctx)
	}
}

// ticked has a call that shares bid. Another wishes while it is the first that waits for readers:
// what the last poll has read says so, and nothing is sent before.
func (w *wait) ticked(ctx context.Context) (bid bool) {
	mix := w.call.Mix
	if w.call.Want.Shared || mix != nil && mix.bids(w.place) {
		return true
	}
	if mix != nil {
		w.tick.Reset(retry)
	}
	if w.place.Seen().Shared {
		if at, _ := w.place.Position(); at.Ahead == 0 {
			w.wish(ctx)
		}
	}
	return false
}

// wish notes the wish, unless it was noted a moment ago. An error only delays this caller: the keys
// are asked for all the same.
func (w *wait) wish(ctx context.Context) {
	if time.Since(w.wished) < wishEvery {
		return
	}
	if w.waiter.IsZero() {
		w.waiter = lease.NewOwner()
	}
	w.wished = time.Now()
	_ = w.asker.Store.Wish(ctx, w.waiter, w.call.alone(), wishFor)
}

// unwish ends what refused began. A wish that it cannot remove dies by itself.
func (w *wait) unwish(ctx context.Context) {
	if w.tick != nil {
		w.tick.Stop()
	}
	if !w.waiter.IsZero() {
		_ = w.asker.Store.Wish(context.WithoutCancel(ctx), w.waiter, w.call.alone(), 0)
	}
}
