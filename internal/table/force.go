package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.ForceReleaser = (*Store)(nil)

// ForceRelease is one transaction that waits for the row, and so for the holder's fence.
func (s *Store) ForceRelease(ctx context.Context, r lease.ForceRequest) (lease.Forced, error) {
	if err := r.Check(); err != nil {
		return lease.Forced{}, err
	}
	type result struct {
		forced lease.Forced
		found  bool
	}
	bad, err := s.unreadable(ctx, r)
	if err == nil && (bad == nil || bad.Home != 0) {
		err = s.isHere(ctx, r.Key)
	}
	if err != nil {
		return lease.Forced{}, err
	}
	got, err := ask(ctx, s.engine, lane.Release, "force release of", r.Key,
		func(ctx context.Context, session *sqlstore.Session) (g result, err error) {
			err = session.InTx(ctx, func() (err error) {
				if bad != nil {
					g.forced, g.found, err = s.repair(ctx, session, r, *bad)
				} else {
					g.forced, g.found, err = sqlstore.ForceRelease(ctx, session, s.d, r)
				}
				return err
			})
			return g, err
		})
	switch {
	case errors.Is(err, sqlstore.ErrRowLocked):
		return lease.Forced{}, fmt.Errorf("%w: the holder of %q is inside a fenced transaction, which "+
			"comes first: try again when it has ended, or end its session (%w)", lease.ErrBusy, r.Key, err)
	case err != nil:
		return lease.Forced{}, err
	case !got.found:
		return lease.Forced{}, notHeld(r, got.forced.Lease)
	}
	return got.forced, nil
}

// isHere returns an error for a key whose row another kind of store locks. Such a row is not waited
// for, because a transaction may be its lock.
func (s *Store) isHere(ctx context.Context, key string) error {
	away, err := ask(ctx, s.engine, lane.Acquire, "force release of", key,
		func(ctx context.Context, session *sqlstore.Session) (n int, err error) {
			err = session.QueryRow(ctx, s.d.Text("force-home"), []any{[]byte(key)}, &n)
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
	if rows[0].Home < lease.HomeTransaction {
		rows[0].Home = lease.HomeTable // no store has it
	}
	if row := rows[0]; r.Token != 0 && row.Token > 0 && row.Token != r.Token {
		return nil, notHeld(r, lease.Lease{Key: r.Key, Owner: lease.Owner{1}, Token: row.Token})
	}
	return &rows[0], nil
}

// repair frees the row with a token above all that were granted: its own, if that can be read, and
// otherwise that at which an era would begin now.
func (s *Store) repair(
	ctx context.Context, session *sqlstore.Session, r lease.ForceRequest, row lease.Record,
) (lease.Forced, bool, error) {
	token := min(session.Next(row.Token), lease.MaxToken-1)
	if row.Token <= 0 {
		now, err := s.eras.Clock(ctx, session)
		if err != nil {
			return lease.Forced{}, false, err
		}
		token = max(token, era.Start(now))
	}
	return sqlstore.Repair(ctx, session, s.d, r, row, token)
}

// ForceReleases reads the records in one statement that locks nothing.
func (s *Store) ForceReleases(ctx context.Context, f lease.ForcedFilter) ([]lease.Forced, error) {
	f.Limit = cmp.Or(max(f.Limit, 0), 1000)
	return ask(ctx, s.engine, lane.Acquire, "list forced releases", f.Key,
		func(ctx context.Context, session *sqlstore.Session) ([]lease.Forced, error) {
			return sqlstore.ForceReleases(ctx, session, s.d, f)
		})
}
