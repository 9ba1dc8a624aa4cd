package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.ForceReleaser = (*Store)(nil)

// ForceRelease is one transaction that waits for the row, and so for the holder's fence.
func (s *Store) ForceRelease(ctx context.Context, r lease.ForceRequest) (lease.Forced, error) {
	if err := r.Check(); err != nil {
		return lease.Forced{}, err
	}
	began := time.Now()
	got, err := s.tryForce(ctx, r)
	if errors.Is(err, lease.ErrBusy) && !errors.Is(err, lease.ErrUnknown) {
		var ended bool
		if ended, err = s.fencing(ctx, r, time.Since(began), err); ended {
			got, err = s.tryForce(ctx, r)
		}
	}
	return got, err
}

// tryForce reads the row before each try: another client may have mended it, and hold it by now.
func (s *Store) tryForce(ctx context.Context, r lease.ForceRequest) (lease.Forced, error) {
	bad, err := s.unreadable(ctx, r)
	if err == nil && (bad == nil || bad.Placement != 0) {
		err = s.isHere(ctx, r.Key)
	}
	if err != nil {
		return lease.Forced{}, err
	}
	got, found, err := s.force(ctx, r, bad)
	switch {
	case err != nil:
		return lease.Forced{}, err
	case !found:
		return lease.Forced{}, notHeld(r, got.Lease)
	}
	return got, nil
}

// force waits for the row as often as any op does. Its bounds are not those of a lease: with a
// short TTL it would end before the server has said that the row is locked.
func (s *Store) force(
	ctx context.Context, r lease.ForceRequest, bad *lease.Record,
) (lease.Forced, bool, error) {
	var got lease.Forced
	var found bool
	op := s.newOp(conn.Release, task{
		patience: 3 * time.Second,
		other: func(ctx context.Context, session *conn.Session) error {
			return session.InTx(ctx, func() (err error) {
				if bad != nil {
					got, found, err = s.repair(ctx, session, r, *bad)
				} else {
					got, found, err = sqlstore.Force{ForceRequest: r, On: session, Text: s.d}.Release(ctx)
				}
				if err != nil && sqlstore.Judge(s.d, err).Class == sqlstore.Conflict {
					err = fmt.Errorf("%w: %w", sqlstore.ErrRowLocked, err) // which is tried for 5 s, not 8
				}
				return err
			})
		},
	})
	op.Until = time.Now().Add(forceTimeout)
	if _, _, err := s.conclude(ctx, "force release of", r.Key, op); err != nil {
		return lease.Forced{}, false, err // a pinned connection may still write the answer
	}
	return got, found, nil
}

// forceTimeout bounds the wait for a fenced transaction, and what a server takes besides.
const forceTimeout = 15 * time.Second

// cutAge is more than a transaction can be older than MariaDB says, which tells whole seconds.
const cutAge = 2 * time.Second

// fencing says which transactions have the row of a key locked. With Evict it ends their sessions,
// and reports whether it has ended one. It spares those that began after the release did, waited
// ago: once the holder's has ended, the next one may be that of a new holder.
func (s *Store) fencing(
	ctx context.Context, r lease.ForceRequest, waited time.Duration, locked error,
) (ended bool, _ error) {
	least, by := neverAsOld, ""
	if r.Evict {
		least = max(0, waited-cutAge)
	}
	if s.d.Evictor != nil && !s.single {
		ctx, cancel := context.WithTimeout(ctx, evictTimeout)
		defer cancel()
		row := sqlstore.Expired{Key: r.Key, Why: sqlstore.Whatever}
		found, err := s.blockers(ctx, row, least)
		if ended = anyEnded(found); r.Evict && err == nil && !ended {
			found, err = s.blockers(ctx, row, least) // MariaDB may have shown what was
			ended = anyEnded(found)
		}
		if err != nil {
			by = "; which session that is could not be found: " + err.Error()
		}
		for _, b := range found {
			by += "; " + b.String()
		}
	}
	return ended, fmt.Errorf("%w: the holder of %q is inside a fenced transaction, which comes first: try "+
		"again when it has ended, or end its session (Force.Evict, rowlock release --evict)%s (%w)",
		lease.ErrBusy, r.Key, by, locked)
}

func anyEnded(found []sqlstore.Blocker) bool {
	return slices.ContainsFunc(found, func(b sqlstore.Blocker) bool { return b.Ended })
}

// isHere returns an error for a key whose row another kind of store locks. Such a row is not waited
// for, because a transaction may be its lock.
func (s *Store) isHere(ctx context.Context, key string) error {
	away, err := ask(ctx, s.engine, about{conn.Acquire, "force release of", key},
		func(ctx context.Context, session *conn.Session) (n int, err error) {
			err = session.QueryRow(ctx, s.d.Text("force-placement"), []any{[]byte(key)}, &n)
			return n, err
		})
	if err == nil && away > 0 {
		err = fmt.Errorf("%w: force release of %q: move it back first, or, if its lock is a transaction "+
			"of package forupdate, end the session that holds it", lease.ErrMoved, key)
	}
	return err
}

func notHeld(r lease.ForceRequest, found lease.Lease) error {
	if found.Owner.IsZero() {
		return fmt.Errorf("%w: force release of %q: the key is free", lease.ErrNotHeld, r.Key)
	}
	return fmt.Errorf("%w: force release of %q: its token is %d and not %d, because another client "+
		"holds it by now", lease.ErrNotHeld, r.Key, found.Token, r.Token)
}

// unreadable returns the row if it cannot be read, and so needs repair. Its token is compared as
// far as it can be.
func (s *Store) unreadable(ctx context.Context, r lease.ForceRequest) (*lease.Record, error) {
	rows, err := s.listed(ctx, lease.Filter{Keys: []string{r.Key}, Limit: 1})
	if err != nil || len(rows) == 0 || rows[0].Err == nil {
		return nil, err
	}
	if rows[0].Placement < leastPlacement {
		rows[0].Placement = lease.PlacementTable // no store has it
	}
	if row := rows[0]; r.Token != 0 && row.Token > 0 && row.Token != r.Token {
		return nil, notHeld(r, lease.Lease{Key: r.Key, Owner: lease.Owner{1}, Token: row.Token})
	}
	return &rows[0], nil
}

// repair frees the row with a token above all that were granted: its own, if that can be read, and
// otherwise that at which an era would begin now.
func (s *Store) repair(
	ctx context.Context, session *conn.Session, r lease.ForceRequest, row lease.Record,
) (lease.Forced, bool, error) {
	token := min(session.Next(row.Token), lease.MaxToken-1)
	if row.Token <= 0 {
		now, err := s.eras.Clock(ctx, session)
		if err != nil {
			return lease.Forced{}, false, err
		}
		token = max(token, era.Start(now))
	}
	return sqlstore.Force{ForceRequest: r, On: session, Text: s.d}.Repair(ctx, row, token)
}

// ForceReleases reads the records in one statement that locks nothing.
func (s *Store) ForceReleases(ctx context.Context, f lease.ForcedFilter) ([]lease.Forced, error) {
	f.Limit = cmp.Or(max(f.Limit, 0), 1000)
	return ask(ctx, s.engine, about{conn.Acquire, "list forced releases", f.Key},
		func(ctx context.Context, session *conn.Session) ([]lease.Forced, error) {
			return sqlstore.ForceReleases(ctx, session, s.d, f)
		})
}

var _ lease.Raiser = (*Store)(nil)

// Raise changes each row in a statement of its own.
func (s *Store) Raise(ctx context.Context, reqs []lease.RaiseRequest) ([]lease.Raised, error) {
	out, ops := make([]lease.Raised, len(reqs)), make([]*op, len(reqs))
	rows := make([]int64, len(reqs))
	for i, r := range reqs {
		if out[i].Err = r.Check(); out[i].Err == nil {
			ops[i] = s.begin(len(ops) > 1, conn.Release, task{other: s.raise(r, &rows[i])})
		}
	}
	for i, op := range ops {
		if op == nil {
			continue
		}
		_, _, err := s.conclude(ctx, "raise the token of", reqs[i].Key, op)
		out[i].Err = err
		out[i].Gone = err == nil && rows[i] == 0
	}
	return out, only(out, func(r lease.Raised) error { return r.Err })
}

// raise counts the rows that one try has changed. Only the answer of a try that was concluded is
// read.
func (s *Store) raise(r lease.RaiseRequest, rows *int64) func(context.Context, *conn.Session) error {
	args := []any{r.To, []byte(r.Key), conn.Bytes(r.Owner), r.Token, r.To}
	return func(ctx context.Context, session *conn.Session) (err error) {
		*rows, err = session.Change(ctx, s.d.Text("raise"), args...)
		return err
	}
}
