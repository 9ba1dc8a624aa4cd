package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/rowlockdb/rowlock/lease"
)

// Ticket is a ticket and where it goes into its queue.
type Ticket struct {
	lease.Ticket
	// Rank and Beside are those of the ticket that this one goes right behind. After is a rank that
	// it must not come before. 0: it goes by its own rank.
	Rank, Beside, After int64
}

// joiner is what a database does to tickets whose places are known.
type joiner func(ctx context.Context, s *Session, tickets []Ticket) error

// JoinInTurn joins tickets. Those without a tenant, and those that are there already, take one
// call of join. Each of the others first reads where its tenant's turn is. Two that do so at the
// same moment may get the same turn.
func (b *Base) JoinInTurn(
	ctx context.Context, s *Session, tickets []lease.Ticket, join joiner,
) error {
	at, late, err := b.inTurn(ctx, s, tickets)
	if err == nil && len(at) > 0 {
		err = join(ctx, s, at)
	}
	for i := 0; err == nil && i < len(late); i++ {
		if err = b.turn(ctx, s, &late[i]); err == nil {
			err = join(ctx, s, late[i:i+1])
		}
	}
	return err
}

// inTurn returns the tickets that need no turn, and those that do. A lone ticket is not looked up,
// because its turn is ignored if it is there.
func (b *Base) inTurn(ctx context.Context, s *Session, tickets []lease.Ticket) (
	at, late []Ticket, err error,
) {
	var waiters []lease.Lease
	var of []lease.Ticket
	for _, t := range tickets {
		if t.Tenant == "" {
			at = append(at, Ticket{Ticket: t})
			continue
		}
		waiters = append(waiters, lease.Lease{Key: t.Key, Owner: t.Owner})
		of = append(of, t)
	}
	if len(tickets) == 1 {
		for _, t := range of {
			late = append(late, Ticket{Ticket: t})
		}
		return at, late, nil
	}
	if len(of) == 0 {
		return at, nil, nil
	}
	there, err := b.Places(ctx, s, waiters)
	if err != nil {
		return nil, nil, err
	}
	for i, t := range of {
		if there[i].Missing {
			late = append(late, Ticket{Ticket: t})
		} else {
			at = append(at, Ticket{Ticket: t})
		}
	}
	slices.SortStableFunc(at, func(a, b Ticket) int { return cmp.Compare(a.Key, b.Key) })
	return at, late, nil
}

// turn reads where a ticket belongs.
func (b *Base) turn(ctx context.Context, s *Session, t *Ticket) error {
	args := []any{[]byte(t.Key)}
	for range b.Tenants {
		args = append(args, []byte(t.Tenant))
	}
	var behind bool
	var rank, place int64
	err := s.QueryRow(ctx, b.Text("queue-turn"), args, &behind, &rank, &place)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case behind:
		t.Rank, t.Beside = rank, place
	default:
		t.After = rank
	}
	return nil
}
