package forupdate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// tries bounds how often a key without a holder is asked for if its row is locked: by a transaction
// that reads it, is about to be granted it, or is releasing it. All of that takes a millisecond or
// two.
const tries = 6

// Acquire grants keys that no other transaction has, each with a connection of its own. If the
// connection of a key's holder has ended, the key is granted at once, whatever its expiry says.
func (s *Store) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	out := make([]lease.Acquired, len(reqs))
	for i, r := range reqs {
		a, err := s.acquire(ctx, r)
		if out[i] = a; err != nil {
			out[i] = lease.Acquired{Err: err}
		}
	}
	if len(out) == 1 {
		return out, out[0].Err
	}
	return out, nil
}

func (s *Store) acquire(ctx context.Context, r lease.AcquireRequest) (lease.Acquired, error) {
	if err := cmp.Or(r.Check(), s.check("acquire", r.Key)); err != nil {
		return lease.Acquired{}, err
	}
	leave, err := s.turns.enter(ctx, r.Key)
	if err != nil {
		return lease.Acquired{}, unsent("acquire", r.Key, err)
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return lease.Acquired{}, unsent("acquire", r.Key, err)
	}
	if a, done, err := s.again(ctx, r); done || err != nil {
		return a, err
	}
	for try := 1; ; try++ {
		a, done, err := s.attempt(ctx, r)
		if done || err != nil {
			return a, err
		}
		if try == tries {
			a.Locked = true
			return a, nil
		}
		if !retry.Sleep(ctx, rand.N(time.Duration(try)*2*time.Millisecond)) {
			return lease.Acquired{}, unsent("acquire", r.Key, ctx.Err())
		}
	}
}

func unsent(verb, key string, err error) error {
	return fmt.Errorf("rowlock: %s %q: not sent: %w", verb, key, err)
}

// again answers for a key that this store already holds, if it really does: its owner gets the
// lease as it is, and others are refused.
func (s *Store) again(ctx context.Context, r lease.AcquireRequest) (a lease.Acquired, done bool, err error) {
	h, held := s.of(r.Key)
	if h == nil {
		return a, false, nil
	}
	rec, err := s.row(ctx, r.Key)
	if err != nil {
		return a, false, err
	}
	if rec.Held {
		return s.found(ctx, rec, r)
	}
	s.let(ctx, h, held, false) // expired, released elsewhere, or its connection ended
	return a, false, nil
}

// found is the answer for a key that a read shows as held. Its owner gets the lease as it is, once
// a renewal has proved it and is committed: a read may show what a failover then forgets, or the
// row of a transaction that has ended. done is false if the owner has lost it.
func (s *Store) found(
	ctx context.Context, rec lease.Record, r lease.AcquireRequest,
) (a lease.Acquired, done bool, err error) {
	if rec.Owner != r.Owner {
		return lease.Acquired{Holder: lease.Holder{Note: rec.Note, Remaining: max(0, rec.Remaining)}}, true, nil
	}
	if err := conn.CheckToken(true, rec.Token); err != nil {
		return lease.Acquired{Err: err}, true, nil
	}
	out, err := s.Renew(ctx, []lease.RenewRequest{{Lease: rec.Lease, TTL: r.TTL}})
	if err == nil {
		err = out[0].Err
	}
	switch {
	case err != nil:
		return a, true, err
	case out[0].Outcome == lease.Extended:
		return lease.Acquired{Granted: true, Token: rec.Token}, true, nil
	case out[0].Outcome == lease.Busy:
		return lease.Acquired{Locked: true}, true, nil
	}
	return a, false, nil
}

// attempt asks for the key once. done is false if the key has no holder but its row is locked.
func (s *Store) attempt(ctx context.Context, r lease.AcquireRequest) (a lease.Acquired, done bool, err error) {
	c, got, err := s.open(ctx, r)
	if err != nil {
		return s.connless(ctx, r, err)
	}
	kept := false
	defer func() {
		if !kept {
			s.conns.giveBack(ctx, c)
		}
	}()
	if !got {
		return s.taken(ctx, r)
	}
	if a, err = s.grant(ctx, r); err != nil || !a.Granted {
		return a, err == nil, err
	}
	if err := s.keep(ctx, c, lease.Lease{Key: r.Key, Owner: r.Owner, Token: a.Token}); err != nil {
		// The row says that it is granted; the next acquire clears it.
		return lease.Acquired{}, false, oneline.Join(lease.ErrUnknown, err)
	}
	kept = true
	return a, true, nil
}

// open returns a connection that has tried to lock the key's row. An idle connection may turn out
// to have been ended by the server; open then tries another, until a new one fails.
func (s *Store) open(ctx context.Context, r lease.AcquireRequest) (c *lockConn, got bool, err error) {
	for {
		if c, err = s.conns.take(ctx, r.TTL); err != nil {
			return nil, false, err
		}
		if got, err = s.lock(ctx, c, r.Key); err == nil {
			return c, got, nil
		}
		ended := c.used && c.broken // once idle again, another call may have it
		s.conns.giveBack(ctx, c)
		if !ended || ctx.Err() != nil {
			return nil, false, err
		}
	}
}

// lock locks the key's row, and makes the row first if there is none.
func (s *Store) lock(ctx context.Context, c *lockConn, key string) (got bool, err error) {
	within, cancel := graceful(ctx)
	defer cancel()
	if got, err = c.lock(within, key); got || err != nil {
		return got, err
	}
	made, err := s.keys.make(ctx, "acquire", []string{key})
	if err != nil || made == 0 {
		return false, err
	}
	return c.lock(within, key)
}

// taken answers for a key whose row another transaction has locked.
func (s *Store) taken(ctx context.Context, r lease.AcquireRequest) (a lease.Acquired, done bool, err error) {
	rec, err := s.row(ctx, r.Key)
	if err != nil || !rec.Held {
		return a, false, err
	}
	return s.found(ctx, rec, r)
}

// grant writes the lock into the key's row; the transaction has the lock already. Any other owner
// that the row names has lost it.
func (s *Store) grant(ctx context.Context, r lease.AcquireRequest) (lease.Acquired, error) {
	for {
		a, err := s.rows.Acquire(ctx, []lease.AcquireRequest{r})
		if err != nil || a[0].Granted {
			return a[0], err
		}
		rows, err := s.rows.Inspect(ctx, lease.Filter{Keys: []string{r.Key}})
		if err != nil {
			return lease.Acquired{}, err
		}
		if len(rows) > 0 && rows[0].Err != nil {
			return lease.Acquired{}, rows[0].Err
		}
		if len(rows) == 0 || !rows[0].Held {
			return a[0], nil // expired, and locked by a fence
		}
		if evicted, err := s.evict(ctx, rows[0].Lease); err != nil || !evicted {
			return lease.Acquired{Holder: lease.Holder{Note: rows[0].Note}}, err // a fence has it
		}
	}
}

// connless answers without a connection to ask with, which a key that another holds does not need.
func (s *Store) connless(
	ctx context.Context, r lease.AcquireRequest, err error,
) (a lease.Acquired, done bool, _ error) {
	if !errors.Is(err, errFull) {
		if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err) // the statement's own error names the grace
		}
		return a, false, s.explain(r.Key, err)
	}
	if rec, lookErr := s.row(ctx, r.Key); lookErr != nil {
		return a, false, lookErr
	} else if rec.Held {
		return s.found(ctx, rec, r)
	}
	return a, false, fmt.Errorf("%w: acquire %q: this store holds %d locks, each with a connection, and may hold "+
		"no more: raise forupdate.Connections, and MaxOpenConns with it; or use leases (rowlock.Open), which "+
		"need no connection each", lease.ErrBusy, r.Key, s.conns.most)
}

// row is the key's row, checked against the locks; the zero Record if there is none.
func (s *Store) row(ctx context.Context, key string) (lease.Record, error) {
	rows, err := s.Inspect(ctx, lease.Filter{Keys: []string{key}, Limit: 1})
	if err != nil || len(rows) == 0 {
		return lease.Record{}, err
	}
	return rows[0], rows[0].Err
}

// explain is for an error before the row was written: nothing has been granted.
func (s *Store) explain(key string, err error) error {
	if oneline.Is(err, lease.ErrClosed, lease.ErrUnsupported, lease.ErrUnknown, lease.ErrBusy) {
		return fmt.Errorf("acquire %q: %w", key, err)
	}
	v := sqlstore.Judge(s.keys.d, err)
	if v.As == nil && v.Class == sqlstore.Unfit {
		v.As = lease.ErrBusy
	}
	return v.Explain(sqlstore.What("acquire", key), err)
}
