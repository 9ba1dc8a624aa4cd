package table

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Queue = (*Store)(nil)

// Join gives tickets their places, or shows that they are alive, in one statement (two where the database needs it).
func (s *Store) Join(ctx context.Context, tickets []lease.Ticket) error {
	for _, t := range tickets {
		if err := checkTicket(t); err != nil {
			return err
		}
	}
	if len(tickets) == 0 {
		return nil
	}
	tickets = unique(tickets)
	_, _, err := s.do(ctx, lane.Acquire, "join", tickets[0].Key, task{other: func(ctx context.Context, session *sqlstore.Session) error {
		return s.d.Join(ctx, session, tickets)
	}})
	return err
}

func checkTicket(t lease.Ticket) error {
	switch {
	case len(t.Key) == 0 || len(t.Key) > lease.MaxKey:
		return lease.CheckKey(t.Key)
	case t.Owner.IsZero():
		return fmt.Errorf("%w: join %q: the zero owner is nobody; use lease.NewOwner", lease.ErrConfig, t.Key)
	}
	return t.CheckPriority()
}

// unique puts tickets in key order, in which all who write to the queue lock it, and leaves out those that come twice, of which no
// database likes to write both in one statement.
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
	waiters = slices.SortedStableFunc(slices.Values(waiters), func(a, b lease.Lease) int { return cmp.Compare(a.Key, b.Key) })
	_, _, err := s.do(ctx, lane.Release, "leave", waiters[0].Key, task{other: func(ctx context.Context, session *sqlstore.Session) error {
		return s.d.Leave(ctx, session, waiters)
	}})
	return err
}

// Places reads in one statement, however many tickets there are.
func (s *Store) Places(ctx context.Context, waiters []lease.Lease) ([]lease.Place, error) {
	if len(waiters) == 0 {
		return nil, nil
	}
	return ask(ctx, s, lane.Acquire, "places", waiters[0].Key, func(ctx context.Context, session *sqlstore.Session) ([]lease.Place, error) {
		return s.d.Places(ctx, session, waiters)
	})
}

// ask returns what f answered on a lane.
func ask[A any](ctx context.Context, s *Store, kind lane.Kind, verb, key string, f func(context.Context, *sqlstore.Session) (A, error)) (A, error) {
	answer, _, err := askTwice(ctx, s, kind, verb, key, f)
	return answer, err
}

// askTwice also says whether an earlier try had an unknown outcome.
func askTwice[A any](ctx context.Context, s *Store, kind lane.Kind, verb, key string, f func(context.Context, *sqlstore.Session) (A, error)) (A, bool, error) {
	var answer, none A
	_, doubtful, err := s.do(ctx, kind, verb, key, task{other: func(ctx context.Context, session *sqlstore.Session) (err error) {
		answer, err = f(ctx, session)
		return err
	}})
	if err != nil {
		return none, doubtful, err // the answer may still be written to
	}
	return answer, doubtful, nil
}

// Claim grants what is free or expired to whoever is first, one request after another.
func (s *Store) Claim(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	out := make([]lease.Acquired, len(reqs))
	ctx, cancel := s.oneAfterAnother(ctx, len(reqs))
	defer cancel()
	for i, r := range reqs {
		if out[i].Err = r.Check(); out[i].Err != nil {
			continue
		}
		a, doubtful, err := askTwice(ctx, s, lane.Acquire, "claim", r.Key, func(ctx context.Context, session *sqlstore.Session) (lease.Acquired, error) {
			a, err := s.d.Claim(ctx, session, r)
			return s.confirmed(ctx, session, &r, a, err)
		})
		out[i] = granted(a, doubtful, err)
	}
	return out, only(out, func(a lease.Acquired) error { return a.Err })
}

// Pass gives up leases to whoever is next, one after another. A second try after a lost reply cannot pass twice, for it names the
// old owner and token.
func (s *Store) Pass(ctx context.Context, leases []lease.Lease) ([]lease.Passed, error) {
	out := make([]lease.Passed, len(leases))
	ctx, cancel := s.oneAfterAnother(ctx, len(leases))
	defer cancel()
	for i, l := range leases {
		got, doubtful, err := askTwice(ctx, s, lane.Release, "pass", l.Key, func(ctx context.Context, session *sqlstore.Session) (lease.Passed, error) {
			return s.d.Pass(ctx, session, l)
		})
		out[i] = got
		out[i].Gone = got.Gone && !doubtful // the try that was not heard of may have been what passed it
		out[i].Err = err
	}
	return out, only(out, func(p lease.Passed) error { return p.Err })
}

// sweepTickets removes dead tickets, one batch after another.
func (s *Store) sweepTickets(ctx context.Context, o lease.SweepOptions) error {
	retention := sqlstore.Micros(o.Retention)
	for after := (lease.Lease{}); ; {
		dead, err := ask(ctx, s, lane.Acquire, "sweep", "", func(ctx context.Context, session *sqlstore.Session) ([]lease.Lease, error) {
			return s.d.DeadTickets(ctx, session, after, retention, o.Batch)
		})
		if err != nil || len(dead) == 0 {
			return err
		}
		err = s.OnLane(ctx, "sweep", "", func(ctx context.Context, session *sqlstore.Session) error {
			return s.d.DropDead(ctx, session, dead, retention)
		})
		if err != nil || len(dead) < o.Batch {
			return err
		}
		after = dead[len(dead)-1]
		if err := pause(ctx, o.Pause); err != nil {
			return err
		}
	}
}
