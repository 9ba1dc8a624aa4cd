package table

import (
	"context"
	"errors"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// rehearseQueue claims a key, lets another join twice, because the second time is an update, passes the key to it, and lets one
// who is not served leave. In the end the key is free and nobody waits.
func (s *Store) rehearseQueue(ctx context.Context, key string) error {
	held, err := s.rehearseClaim(ctx, key)
	if err != nil {
		return err
	}
	first, second := rehearsalTicket(key), rehearsalTicket(key)
	for _, tickets := range [][]lease.Ticket{{first, second}, {second, first}} {
		if err := s.Join(ctx, tickets); err != nil {
			return err
		}
	}
	if err := s.rehearsePlace(ctx, second, lease.Place{Ahead: 1}); err != nil {
		return err
	}
	if _, err := s.Pass(ctx, []lease.Lease{held}); err != nil {
		return err
	}
	if err := s.rehearsePlace(ctx, first, lease.Place{Granted: true, Token: held.Token + 1}); err != nil {
		return err
	}
	return s.rehearseLeave(ctx, first, second)
}

func rehearsalTicket(key string) lease.Ticket {
	r := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: rehearsalTTL, Note: "rowlock.Open"}
	return lease.Ticket{AcquireRequest: r, Priority: 1}
}

func (s *Store) rehearseClaim(ctx context.Context, key string) (lease.Lease, error) {
	r := rehearsalTicket(key).AcquireRequest
	got, err := s.Claim(ctx, []lease.AcquireRequest{r})
	if err == nil && !got[0].Granted || errors.Is(err, sqlstore.ErrRowShape) {
		err = vanished("a key that nobody has or waits for was not granted")
	}
	return lease.Lease{Key: key, Owner: r.Owner, Token: got[0].Token}, err
}

func (s *Store) rehearsePlace(ctx context.Context, t lease.Ticket, want lease.Place) error {
	got, err := s.Places(ctx, waiter(t))
	if err == nil && (got[0].Granted != want.Granted || got[0].Token != want.Token || got[0].Ahead != want.Ahead || got[0].Missing != want.Missing) {
		err = vanished("a ticket was not written, not served or not removed")
	}
	return err
}

// rehearseLeave has the second leave before the first passes on what he has.
func (s *Store) rehearseLeave(ctx context.Context, first, second lease.Ticket) error {
	if err := s.Leave(ctx, waiter(second)); err != nil {
		return err
	}
	if _, err := s.Pass(ctx, waiter(first)); err != nil {
		return err
	}
	return s.rehearsePlace(ctx, second, lease.Place{Missing: true})
}

func waiter(t lease.Ticket) []lease.Lease { return []lease.Lease{{Key: t.Key, Owner: t.Owner}} }
