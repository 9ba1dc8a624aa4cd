package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// rehearseInterest registers a waiter and removes it.
func (s *Store) rehearseInterest(ctx context.Context, key string) error {
	process, keys := lease.NewOwner(), []string{key}
	err := s.note(ctx, "register", keys,
		conn.Bytes(process), s.d.AsStored(""), conn.Micros(rehearsalTTL), s.ordered(keys))
	if err != nil {
		return err
	}
	seen, err := s.Awaited(ctx, lease.Owner{}, keys)
	if err == nil && !seen[0] {
		err = vanished("a process that waits was not noted")
	}
	return oneline.Join(err, s.Unregister(ctx, process, keys))
}

// rehearse acquires a key of its own twice, because another statement creates a row than takes it.
// It also registers a waiter, and reaps the row. After each step it reads the result, or the next
// step shows it, because a trigger or a row policy can make a write vanish without an error.
func (s *Store) rehearse(ctx context.Context, o Options) error {
	key := lease.Reserved + "open/" + lease.NewOwner().String()
	created, err := s.rehearseHold(ctx, key)
	if err != nil {
		return err
	}
	taken, err := s.rehearseGrant(ctx, rehearsalTicket(key).AcquireRequest, s.Acquire)
	if err == nil && taken.Token <= created.Token {
		err = vanished("a token did not grow")
	}
	if err == nil {
		_, err = s.Release(ctx, []lease.Lease{taken})
	}
	if err != nil {
		return err
	}
	if !o.Optimistic {
		if err := s.rehearseQueue(ctx, key); err != nil {
			return err
		}
	}
	if err := s.rehearseInterest(ctx, key); err != nil {
		return err
	}
	if _, err := ask(ctx, s.engine, about{conn.Release, "rehearse an era", ""}, s.eras.Rehearse); err != nil {
		return err
	}
	return s.rehearseReap(ctx, key, o)
}

// rehearseReap removes the row. A user who may not, and need not, leaves it to clients that sweep.
// A reaper skips a row that is locked, for instance by a statement of this store that was given up
// and still runs: the row is then asked for again for a while.
func (s *Store) rehearseReap(ctx context.Context, key string, o Options) error {
	for began := time.Now(); ; {
		removed, err := s.reap(ctx, lease.Bucket(key), []string{key}, 0)
		if o.Optimistic && errors.Is(err, lease.ErrPrivilege) {
			return nil
		}
		if err != nil {
			return err
		}
		rows, err := s.Inspect(ctx, lease.Filter{Keys: []string{key}})
		if err != nil || len(rows) == 0 {
			return err
		}
		if !s.freedLate(ctx, key) && removed > 0 || time.Since(began) > busyPatience {
			return vanished("a dead row was not removed")
		}
		if !retry.Sleep(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// freedLate frees the key, and reports whether it did, if it is locked while no step of the
// rehearsal has it: by a statement that was given up. No other process knows the key.
func (s *Store) freedLate(ctx context.Context, key string) bool {
	rows, err := s.Inspect(ctx, lease.Filter{Keys: []string{key}})
	if err != nil || len(rows) == 0 || !rows[0].Held {
		return false
	}
	_, err = s.Release(ctx, []lease.Lease{rows[0].Lease})
	return err == nil
}

// rehearseGrant asks again for a while if the database is busy, as with an era that others begin,
// or if a statement that was given up has the key.
func (s *Store) rehearseGrant(ctx context.Context, r lease.AcquireRequest,
	ask func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error),
) (lease.Lease, error) {
	for began := time.Now(); ; {
		got, err := ask(ctx, []lease.AcquireRequest{r})
		again := errors.Is(err, lease.ErrBusy) || err == nil && !got[0].Granted && s.freedLate(ctx, r.Key)
		if again && time.Since(began) < busyPatience && retry.Sleep(ctx, 20*time.Millisecond) {
			continue
		}
		if err == nil && !got[0].Granted || errors.Is(err, sqlstore.ErrRowShape) {
			err = vanished("a free key was not granted")
		}
		return lease.Lease{Key: r.Key, Owner: r.Owner, Token: got[0].Token}, err
	}
}

// rehearseHold acquires, renews and releases. A released row may vanish at once, if another client
// sweeps without retention.
func (s *Store) rehearseHold(ctx context.Context, key string) (l lease.Lease, err error) {
	if l, err = s.rehearseGrant(ctx, rehearsalTicket(key).AcquireRequest, s.Acquire); err == nil {
		err = s.rehearseRenew(ctx, l)
	}
	if err != nil {
		return l, err
	}
	rows, err := s.Inspect(ctx, lease.Filter{Keys: []string{key}})
	if err == nil && (len(rows) != 1 || rows[0].Lease != l || rows[0].Remaining <= rehearsalTTL) {
		err = vanished("a lease that was granted a moment ago was not renewed")
	}
	if err == nil {
		err = s.rehearseGraph(ctx, l)
	}
	if err == nil {
		_, err = s.Release(ctx, []lease.Lease{l})
	}
	if err != nil {
		return l, err
	}
	rows, err = s.Inspect(ctx, lease.Filter{Keys: []string{key}})
	if err == nil && len(rows) > 0 && rows[0].Held {
		err = vanished("a lock that was given back is still held")
	}
	return l, err
}

// busyPatience is how long a SQLite file may be locked by other transactions, and the row of the
// rehearsal anywhere.
const busyPatience = 5 * time.Second

// rehearseRenew asks again for a while if the answer is busy: in SQLite any other transaction
// causes that. Elsewhere no other transaction knows the row, and the caller finds out what it is.
func (s *Store) rehearseRenew(ctx context.Context, l lease.Lease) error {
	for began := time.Now(); ; {
		renewed, err := s.Renew(ctx, []lease.RenewRequest{{Lease: l, TTL: 2 * rehearsalTTL}})
		if err != nil || renewed[0].Outcome != lease.Busy {
			return err
		}
		if !s.d.OneWriter && time.Since(began) > time.Second {
			return nil
		}
		if time.Since(began) > busyPatience {
			return fmt.Errorf("%w: other transactions kept a row of rowlock's own locked for %s; open "+
				"again", lease.ErrBusy, busyPatience)
		}
		if !retry.Sleep(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// rehearseQueue claims a key and has two waiters join twice, because the second time is an update.
// It passes the key to the first, and has the second leave unserved. In the end the key is free and
// has no waiters.
func (s *Store) rehearseQueue(ctx context.Context, key string) error {
	held, err := s.rehearseGrant(ctx, rehearsalTicket(key).AcquireRequest, s.Claim)
	if err != nil {
		return err
	}
	first, second := rehearsalTicket(key), rehearsalTicket(key)
	for _, tickets := range [][]lease.Ticket{{first, second}, {second, first}} {
		if _, err := s.Join(ctx, tickets); err != nil {
			return err
		}
	}
	if err := s.rehearsePlace(ctx, second, lease.QueuePosition{Ahead: 1}); err != nil {
		return err
	}
	token, err := s.rehearsePass(ctx, held, first)
	if err != nil {
		return err
	}
	if err := s.rehearsePlace(ctx, first, lease.QueuePosition{Granted: true, Token: token}); err != nil {
		return err
	}
	return s.rehearseLeave(ctx, first, second)
}

// rehearsePass passes held to the next waiter. A try whose answer was lost may have passed it, as
// when this process was stopped meanwhile: then the waiter's place has the token.
func (s *Store) rehearsePass(ctx context.Context, held lease.Lease, next lease.Ticket) (lease.Token, error) {
	passed, err := s.Pass(ctx, []lease.Lease{held})
	if err != nil {
		return 0, err
	}
	token := passed[0].Token
	if token == 0 {
		places, err := s.QueuePositions(ctx, waiter(next))
		if err != nil {
			return 0, err
		}
		if token = places[0].Token; !places[0].Granted {
			// On a session that has learned no era a pass frees the key, and the head claims it.
			l, err := s.rehearseGrant(ctx, next.AcquireRequest, s.Claim)
			if err != nil {
				return 0, err
			}
			token = l.Token
		}
	}
	if token <= held.Token {
		err = vanished("the token of a lease that was passed on")
	}
	return token, err
}

func rehearsalTicket(key string) lease.Ticket {
	r := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: rehearsalTTL, Note: "rowlock.Open"}
	return lease.Ticket{AcquireRequest: r, Priority: 1}
}

func (s *Store) rehearsePlace(ctx context.Context, t lease.Ticket, want lease.QueuePosition) error {
	got, err := s.QueuePositions(ctx, waiter(t))
	if err == nil && (got[0].Granted != want.Granted || want.Granted && got[0].Token != want.Token ||
		got[0].Ahead != want.Ahead || got[0].Missing != want.Missing) {
		err = vanished("a ticket was not written, not served or not removed")
	}
	return err
}

// rehearseLeave has the second leave before the first passes its lease on.
func (s *Store) rehearseLeave(ctx context.Context, first, second lease.Ticket) error {
	if err := s.Leave(ctx, waiter(second)); err != nil {
		return err
	}
	if _, err := s.Pass(ctx, waiter(first)); err != nil {
		return err
	}
	return s.rehearsePlace(ctx, second, lease.QueuePosition{Missing: true})
}

func waiter(t lease.Ticket) []lease.Lease { return []lease.Lease{{Key: t.Key, Owner: t.Owner}} }
