package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.AnyAcquirer = (*Store)(nil)

// AcquireAny grants n of the keys or none. On PostgreSQL it needs one statement if n keys with rows
// are free, elsewhere a read before it, and two more if it has to make rows.
func (s *Store) AcquireAny(ctx context.Context, reqs []lease.AcquireRequest, n int) (
	[]lease.Acquired, error,
) {
	if err := adapter.CheckAny(reqs, n); err != nil {
		return nil, err
	}
	out, err := s.acquireAny(ctx, reqs, n)
	// Not after a grant: an error of what comes next would hide it from its caller.
	granted := slices.ContainsFunc(out, func(a lease.Acquired) bool { return a.Granted })
	if err == nil && !granted && slices.ContainsFunc(out, isGroups) {
		return s.againAll(ctx, reqs, out, func(ctx context.Context, reqs []lease.AcquireRequest) (
			[]lease.Acquired, error,
		) {
			return s.acquireAny(ctx, reqs, n)
		})
	}
	return out, err
}

func (s *Store) acquireAny(ctx context.Context, reqs []lease.AcquireRequest, n int) (
	[]lease.Acquired, error,
) {
	changes := changesOf(reqs)
	applied, uncertain,
		err := askTwice(ctx, s.engine, about{conn.Acquire, "acquire any", reqs[0].Key},
		func(ctx context.Context, session *conn.Session) ([]sqlstore.Applied, error) {
			return s.applySome(ctx, session, changes, n, nil)
		})
	switch {
	case err != nil && (!errors.Is(err, sqlstore.ErrRowLocked) || errors.Is(err, lease.ErrUnknown)):
		return nil, err
	case err != nil:
		return s.whyNot(ctx, reqs, uncertain)
	case applied == nil:
		return nil, fmt.Errorf("%w: to acquire any of several keys at once from %s",
			lease.ErrUnsupported, s.d.Name())
	}
	return s.someAnswers(ctx, "acquire any", reqs, applied, n, uncertain)
}

// someAnswers answers requests of which n were to be granted, or none.
func (s *Store) someAnswers(
	ctx context.Context, verb string, reqs []lease.AcquireRequest, applied []sqlstore.Applied, n int, uncertain bool,
) ([]lease.Acquired, error) {
	granted := countOf(applied, sqlstore.Done)
	switch {
	case granted == 0 && anyIs(applied, sqlstore.Alone):
		return s.whyNot(ctx, reqs, uncertain)
	case granted != 0 && granted != n:
		return nil, fmt.Errorf("%w: %s: %d of %d keys are left of an earlier try",
			lease.ErrUnknown, verb, granted, n)
	}
	out := make([]lease.Acquired, len(reqs))
	for i, a := range applied {
		out[i] = allAnswer(reqs[i].Key, a, uncertain)
	}
	return out, nil
}

// changesOf returns the requests as changes in their own order.
func changesOf(reqs []lease.AcquireRequest) []sqlstore.Change {
	changes := make([]sqlstore.Change, len(reqs))
	for i := range reqs {
		changes[i] = changeOf(&reqs[i])
	}
	return changes
}

// applySome runs on a pinned connection, of slots within a limit unless that is nil. The error
// ErrRowLocked says that n keys are free, but other transactions have rows of them locked or have
// just changed them. nil and no error say that the dialect leaves every change to be made alone.
func (s *Store) applySome(
	ctx context.Context, session *conn.Session, changes []sqlstore.Change, n int,
	within *sqlstore.Within,
) ([]sqlstore.Applied, error) {
	applied, err := s.d.ApplyAny(ctx, session, changes, n, within)
	if err != nil {
		return nil, err
	}
	if s.wantsRows(applied, n) {
		absent := absentees(changes, applied)
		slices.SortFunc(absent, func(a, b sqlstore.Change) int { return cmp.Compare(a.From.Key, b.From.Key) })
		if _, err := s.d.Create(ctx, session, absent); err != nil {
			return nil, err
		}
		if applied, err = s.d.ApplyAny(ctx, session, changes, n, within); err != nil {
			return nil, err
		}
	}
	switch {
	case anyIs(applied, sqlstore.Found):
		return s.confirmAll(ctx, session, changes, applied)
	case anyIs(applied, sqlstore.Done):
		for i := range applied {
			if within != nil && applied[i].Outcome == sqlstore.Done {
				applied[i].Generation = within.Generation
			}
		}
		return applied, nil
	case countOf(applied, sqlstore.Possible, sqlstore.Absent) >= n:
		return nil, sqlstore.ErrRowLocked
	case allAre(applied, sqlstore.Alone):
		if able, err := s.appliesAll(ctx, session); err != nil || !able {
			return nil, err
		}
	}
	return applied, nil
}

// wantsRows reports whether n keys can be had only if rows are made for some. Rows are made for all
// that have none, so that the next call finds them.
func (s *Store) wantsRows(applied []sqlstore.Applied, n int) bool {
	absent, free := countOf(applied, sqlstore.Absent), countOf(applied, sqlstore.Possible)
	return absent > 0 && absent+free >= n && !anyIs(applied, sqlstore.Done) &&
		!anyIs(applied, sqlstore.Found)
}

// whyNot reads rows of which too few could be granted.
func (s *Store) whyNot(
	ctx context.Context, reqs []lease.AcquireRequest, uncertain bool,
) ([]lease.Acquired, error) {
	rows, err := s.look(ctx, reqs)
	if err != nil {
		if uncertain && !errors.Is(err, lease.ErrUnknown) {
			err = fmt.Errorf("%w: acquire any: %w", lease.ErrUnknown, err)
		}
		return nil, err
	}
	out := make([]lease.Acquired, len(reqs))
	for i := range reqs {
		row, ok := rows[reqs[i].Key]
		out[i] = blocked(&reqs[i], row)
		out[i].Unknown = uncertain || out[i].Unknown
		if err := s.never(row); ok && err != nil {
			out[i].Err = fmt.Errorf("acquire any: %q: %w", reqs[i].Key, err)
		}
	}
	if err := s.swallowedAny(ctx, reqs, out); err != nil {
		return nil, err
	}
	return out, nil
}
