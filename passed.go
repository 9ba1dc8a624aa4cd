package rowlock

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// confirm renews the lease that another process has passed to the ticket, as was read. A read proves nothing: the commit that passed
// it may wait for a replica still, and be forgotten by a failover. A renewal is a commit that comes after it, and is acknowledged; and
// the lease then ends a TTL after a moment that is known here.
func (s *stance) confirm(ctx context.Context, token int64) (l *Lock, done bool, err error) {
	if !s.f.c.janitor.enter() {
		return nil, true, fmt.Errorf("%w: lock %q", lease.ErrClosed, s.t.Key)
	}
	defer s.f.c.janitor.leave()
	sent := time.Now()
	renewed, err := s.renew(ctx, token)
	switch {
	case err != nil && (!passing(err) || ctx.Err() != nil):
		return nil, true, cutShort(ctx, err) // the lease may be there: the ticket's end gives it back
	case err == nil && renewed.Outcome == lease.Extended:
		a := lease.Acquired{Granted: true, Token: token}
		l, err = s.f.c.granted(ctx, s.t.AcquireRequest, a, s.r, sent, s.began)
		return l, true, err
	}
	// Locked, or lost since: the poller looks where the ticket stands now, and joins it again if it is gone.
	s.f.poller.Watch(s.t.id(), sightOf(&HeldError{Key: s.t.Key}))
	return nil, false, nil
}

func (s *stance) renew(ctx context.Context, token int64) (lease.Renewed, error) {
	held := lease.Lease{Key: s.t.Key, Owner: s.t.Owner, Token: token}
	answers, err := s.f.c.store.Renew(ctx, []lease.RenewRequest{{Lease: held, TTL: s.t.TTL}})
	switch {
	case err != nil:
		return lease.Renewed{}, err
	case len(answers) != 1:
		return lease.Renewed{}, fmt.Errorf("%w: renew %q: %d answers to one request", lease.ErrCorrupt, s.t.Key, len(answers))
	}
	return answers[0], answers[0].Err
}
