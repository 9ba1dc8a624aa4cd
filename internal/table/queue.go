package table

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Queue = (*Store)(nil)

// Join creates tickets, or renews their heartbeat, in one statement (two if the database needs
// them).
func (s *Store) Join(ctx context.Context, tickets []lease.Ticket) (unknown bool, err error) {
	for _, t := range tickets {
		if err := checkTicket(t); err != nil {
			return false, err
		}
	}
	if len(tickets) == 0 {
		return false, nil
	}
	tickets = unique(tickets)
	_, unknown, err = askTwice(ctx, s.engine, about{conn.Acquire, "join", tickets[0].Key},
		func(ctx context.Context, session *conn.Session) (none struct{}, err error) {
			return none, s.d.Join(ctx, session, tickets)
		})
	return unknown, err
}

func checkTicket(t lease.Ticket) error {
	switch {
	case len(t.Key) == 0 || len(t.Key) > lease.MaxKey:
		return lease.CheckKey(t.Key)
	case t.Owner.IsZero():
		return fmt.Errorf("%w: join %q: the zero owner names no waiter; use lease.NewOwner",
			lease.ErrConfig, t.Key)
	}
	return t.CheckPriority()
}

// unique puts tickets in key order, in which every writer locks the queue. It drops tickets that
// come twice, because no database writes both in one statement.
func unique(tickets []lease.Ticket) []lease.Ticket {
	seen := make(map[lease.Lease]bool, len(tickets))
	tickets = slices.DeleteFunc(slices.Clone(tickets), func(t lease.Ticket) bool {
		l := lease.Lease{Key: t.Key, Owner: t.Owner}
		defer func() { seen[l] = true }()
		return seen[l]
	})
	slices.SortStableFunc(tickets, func(a, b lease.Ticket) int { return cmp.Compare(a.Key, b.Key) })
	return tickets
}

// Leave removes tickets in one statement.
func (s *Store) Leave(ctx context.Context, waiters []lease.Lease) error {
	if len(waiters) == 0 {
		return nil
	}
	waiters = slices.SortedStableFunc(slices.Values(waiters),
		func(a, b lease.Lease) int { return cmp.Compare(a.Key, b.Key) })
	_, _, err := s.conclude(ctx, "leave", waiters[0].Key, s.newOp(conn.Release,
		task{other: func(ctx context.Context, session *conn.Session) error {
			return s.d.Leave(ctx, session, waiters)
		}}))
	return err
}

// QueuePositions reads queue positions in one statement, for any number of tickets.
func (s *Store) QueuePositions(ctx context.Context, waiters []lease.Lease) ([]lease.QueuePosition, error) {
	if len(waiters) == 0 {
		return nil, nil
	}
	places, err := ask(ctx, s.engine, about{conn.Acquire, "places", waiters[0].Key},
		func(ctx context.Context, session *conn.Session) ([]lease.QueuePosition, error) {
			return s.d.QueuePositions(ctx, session, waiters)
		})
	if err == nil {
		err = s.unveilPlaces(ctx, waiters, places)
	}
	return places, err
}

// Claim grants what is free or expired to the head of the queue, one request after another.
func (s *Store) Claim(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	out := make([]lease.Acquired, len(reqs))
	ctx, cancel := s.oneAfterAnother(ctx, len(reqs))
	defer cancel()
	for i, r := range reqs {
		if out[i].Err = r.Check(); out[i].Err != nil {
			continue
		}
		a, uncertain, err := askTwice(ctx, s.engine, about{conn.Acquire, "claim", r.Key},
			func(ctx context.Context, session *conn.Session) (lease.Acquired, error) {
				a, err := s.d.Claim(ctx, session, r)
				if err != nil {
					return s.confirmed(ctx, session, &r, a, err)
				}
				return a, nil
			})
		out[i] = granted(a, uncertain, err)
	}
	if slices.ContainsFunc(out, isGroups) {
		out = s.again(ctx, reqs, out, s.Claim)
	}
	return out, only(out, func(a lease.Acquired) error { return a.Err })
}

// Pass hands leases to the next waiters, one after another. A second try after a lost reply cannot
// pass twice, because it names the old owner and token.
func (s *Store) Pass(ctx context.Context, leases []lease.Lease) ([]lease.Passed, error) {
	out := make([]lease.Passed, len(leases))
	ctx, cancel := s.oneAfterAnother(ctx, len(leases))
	defer cancel()
	for i, l := range leases {
		got, uncertain, err := askTwice(ctx, s.engine, about{conn.Release, "pass", l.Key},
			func(ctx context.Context, session *conn.Session) (lease.Passed, error) {
				return s.pass(ctx, session, l)
			})
		out[i] = got
		out[i].Err = err
		if got.Gone && uncertain { // the try without an answer may have passed it
			out[i] = lease.Passed{Err: s.undone(ctx, l)}
		}
	}
	return out, only(out, func(p lease.Passed) error { return p.Err })
}

// pass releases the lease if the session has learned no era: the head of the queue then claims the
// key.
func (s *Store) pass(ctx context.Context, session *conn.Session, l lease.Lease) (lease.Passed, error) {
	p, err := s.d.Pass(ctx, session, l)
	if !era.IsUnlearned(err) {
		return p, err
	}
	r, err := s.d.Release(ctx, session, l)
	return lease.Passed{Gone: r.Gone}, err
}

// sweepTickets removes dead tickets, one batch after another.
func (s *Store) sweepTickets(ctx context.Context, o lease.SweepOptions) error {
	retention := conn.Micros(o.Retention)
	for after := (lease.Lease{}); ; {
		dead, err := ask(ctx, s.engine, about{conn.Acquire, "sweep", ""},
			func(ctx context.Context, session *conn.Session) ([]lease.Lease, error) {
				return s.d.DeadTickets(ctx, session, after, retention, o.Batch)
			})
		if err != nil || len(dead) == 0 {
			return err
		}
		err = s.OnPinned(ctx, "sweep", "",
			func(ctx context.Context, session *conn.Session) error {
				return s.d.DropDead(ctx, session, dead, retention)
			})
		if err != nil || len(dead) < o.Batch {
			return err
		}
		after = dead[len(dead)-1]
		if !retry.Sleep(ctx, o.Pause) {
			return ctx.Err()
		}
	}
}
