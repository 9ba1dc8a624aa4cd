package table

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Acquire grants what is free or expired.
func (s *Store) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	out, ops := make([]lease.Acquired, len(reqs)), make([]*op, len(reqs))
	for i, r := range reqs {
		if out[i].Err = r.Check(); out[i].Err == nil {
			ops[i] = s.begin(len(ops) > 1, conn.Acquire, task{run: runAcquire, acquire: r})
		}
	}
	for i, op := range ops {
		if op != nil {
			a, uncertain, err := s.conclude(ctx, "acquire", reqs[i].Key, op)
			if err != nil && !uncertain && oneline.Is(err, sqlstore.ErrRowLocked, sqlstore.ErrRowShape) {
				if why := s.swallowed(ctx, reqs[i].Key); why != nil {
					err = why
				}
			}
			out[i] = granted(a.acquired, uncertain, err)
		}
	}
	if slices.ContainsFunc(out, isGroups) {
		out = s.again(ctx, reqs, out, s.Acquire)
	}
	return out, only(out, func(a lease.Acquired) error { return a.Err })
}

// granted is the answer to a request. uncertain says that an earlier try of it had an unknown
// outcome.
func granted(a lease.Acquired, uncertain bool, err error) lease.Acquired {
	if err != nil && (!errors.Is(err, sqlstore.ErrRowLocked) || errors.Is(err, lease.ErrUnknown)) {
		return lease.Acquired{Err: err}
	}
	a.Unknown = uncertain
	// Not granted, and nothing is known of the holder: it may be a copy of this request.
	a.Locked = err != nil
	return a
}

// Release clears owners.
func (s *Store) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	shared := func(l lease.Lease) bool { return l.Shared }
	if slices.ContainsFunc(leases, shared) {
		own := func(l []lease.Lease) ([]lease.Released, error) { return s.Release(ctx, l) }
		return splitShared(leases, shared, adapter.Unreleased, own, func(l []lease.Lease) ([]lease.Released, error) {
			out := s.releaseMembers(ctx, l)
			return out, only(out, func(r lease.Released) error { return r.Err })
		})
	}
	out, ops := make([]lease.Released, len(leases)), make([]*op, len(leases))
	for i, l := range leases {
		// A batch would take the zero owner for any expired one.
		if out[i].Gone = l.Owner.IsZero(); !out[i].Gone {
			ops[i] = s.begin(len(ops) > 1, conn.Release, task{run: runRelease, release: l})
		}
	}
	for i, op := range ops {
		if op == nil {
			continue
		}
		a, uncertain, err := s.conclude(ctx, "release", leases[i].Key, op)
		out[i] = a.released
		// A client behind a store that does not say which processes there are may be another one.
		out[i].Looked = out[i].Looked && (s.process.told.Load() || s.process.alone().IsZero())
		out[i].Err = err
		if out[i].Gone && uncertain { // the try without an answer may have released it
			out[i] = lease.Released{Err: s.undone(ctx, leases[i])}
		}
	}
	return out, only(out, func(r lease.Released) error { return r.Err })
}

// undone returns an error if a failover may have ended l instead of its release: an era has begun
// since l was granted, and its key was granted again.
func (s *Store) undone(ctx context.Context, l lease.Lease) error {
	if l.Token == 0 || l.Token > s.eras.Newest() {
		return nil
	}
	rows, err := s.Inspect(ctx, lease.Filter{Keys: []string{l.Key}})
	if err == nil && (len(rows) == 0 || rows[0].Token <= l.Token) {
		return nil
	}
	return oneline.Join(fmt.Errorf("%w: release %q: the server was started or has failed over since the "+
		"grant, and the key may have been granted before its release", lease.ErrUnknown, l.Key), err)
}

// Renew extends leases in one statement, on MySQL in three if some cannot be extended.
func (s *Store) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	shared := func(r lease.RenewRequest) bool { return r.Shared }
	if !slices.ContainsFunc(reqs, shared) {
		return s.renew(ctx, reqs)
	}
	own := func(r []lease.RenewRequest) ([]lease.Renewed, error) { return s.renew(ctx, r) }
	return splitShared(reqs, shared, adapter.Unrenewed, own, func(r []lease.RenewRequest) ([]lease.Renewed, error) {
		out := s.renewMembers(ctx, r)
		return out, only(out, func(r lease.Renewed) error { return r.Err })
	})
}

func (s *Store) renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	if len(reqs) == 0 {
		return nil, nil
	}
	op, _, err := s.conclude(ctx, "renew", reqs[0].Key, s.newOp(conn.Renew, task{run: runRenew, renew: reqs}))
	if len(reqs) > 1 && s.refusedForOne(err) {
		return s.renewApart(ctx, reqs), nil
	}
	return op.renewed, err
}

// refusedForOne reports whether the database has refused a statement because of a row, so that it
// may take it for the other rows.
func (s *Store) refusedForOne(err error) bool {
	if err == nil {
		return false
	}
	v := sqlstore.Judge(s.d, err)
	return v.Class == sqlstore.Refused &&
		(v.As == nil || v.As == lease.ErrCorrupt || v.As == lease.ErrTokenExhausted || v.As == sqlstore.ErrRaised)
}

// renewApart renews each half of leases that cannot be renewed together, until the one that cannot
// be renewed at all is alone.
func (s *Store) renewApart(ctx context.Context, reqs []lease.RenewRequest) (out []lease.Renewed) {
	for _, half := range [][]lease.RenewRequest{reqs[:len(reqs)/2], reqs[len(reqs)/2:]} {
		answers, err := s.renew(ctx, half)
		out = append(out, adapter.Each("renew", answers, err, len(half), adapter.Unrenewed)...)
	}
	return out
}
