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

var _ lease.AllAcquirer = (*Store)(nil)

// AcquireAll grants every key or none. It needs one statement if all keys have rows, and three
// otherwise: it creates free rows first, because a row that it created for its owner could not be
// taken back if another key were refused.
func (s *Store) AcquireAll(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	if err := adapter.CheckAll(reqs); err != nil || len(reqs) == 0 {
		return nil, err
	}
	out, err := s.acquireAll(ctx, reqs)
	if err == nil && slices.ContainsFunc(out, isGroups) {
		return s.againAll(ctx, reqs, out, s.acquireAll)
	}
	return out, err
}

func (s *Store) acquireAll(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	places, changes := inKeyOrder(reqs)
	applied, uncertain,
		err := askTwice(ctx, s.engine, about{conn.Acquire, "acquire all", changes[0].From.Key},
		func(ctx context.Context, session *conn.Session) ([]sqlstore.Applied, error) {
			return s.applyAll(ctx, session, changes)
		})
	out := make([]lease.Acquired, len(reqs))
	switch {
	case err != nil && (!errors.Is(err, sqlstore.ErrRowLocked) || errors.Is(err, lease.ErrUnknown)):
		return nil, err
	case err != nil:
		return out, s.inTheWay(ctx, reqs, out, err)
	case applied == nil:
		return nil, fmt.Errorf("%w: to acquire several keys at once from %s", lease.ErrUnsupported,
			s.d.Name())
	}
	granted := 0
	for i, a := range applied {
		out[places[i]] = allAnswer(changes[i].From.Key, a, uncertain)
		if a.Outcome == sqlstore.Done {
			granted++
		}
	}
	if granted > 0 && granted < len(out) && !uncertain { // by one statement, for all or none
		return nil, fmt.Errorf("%w: acquire all: %w", lease.ErrUnknown,
			vanished(fmt.Sprintf("%d of %d rows were changed", granted, len(out))))
	}
	// An earlier try of these owners granted them all, and some of the leases have expired since.
	if granted > 0 && granted < len(out) {
		return nil, fmt.Errorf("%w: acquire all: %d of %d keys are left of an earlier try",
			lease.ErrUnknown, granted, len(out))
	}
	return out, nil
}

// inKeyOrder returns the requests as changes in key order, and the place of each in reqs.
func inKeyOrder(reqs []lease.AcquireRequest) (places []int, changes []sqlstore.Change) {
	places = make([]int, len(reqs))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(reqs[a].Key, reqs[b].Key) })
	changes = make([]sqlstore.Change, len(reqs))
	for i, at := range places {
		changes[i] = changeOf(&reqs[at])
	}
	return places, changes
}

// applyAll runs on a pinned connection. Its result is final unless the error is ErrRowLocked: then
// all keys were free, but another transaction has a row locked or has just changed one. nil and no
// error say that the dialect leaves every change to be made alone.
func (s *Store) applyAll(
	ctx context.Context, session *conn.Session, changes []sqlstore.Change,
) ([]sqlstore.Applied, error) {
	applied, err := s.d.Apply(ctx, session, changes, true)
	if err != nil {
		return nil, err
	}
	if absent := absentees(changes, applied); len(absent) > 0 && !anyIs(applied, sqlstore.Held) {
		if _, err := s.d.Create(ctx, session, absent); err != nil {
			return nil, err
		}
		if applied, err = s.d.Apply(ctx, session, changes, true); err != nil {
			return nil, err
		}
	}
	switch {
	case anyIs(applied, sqlstore.Found):
		return s.confirmAll(ctx, session, changes, applied)
	case anyIs(applied, sqlstore.Held), anyIs(applied, sqlstore.Done):
		return applied, nil
	case allAre(applied, sqlstore.Alone):
		if able, err := s.appliesAll(ctx, session); err != nil || !able {
			return nil, err
		}
	}
	return nil, sqlstore.ErrRowLocked
}

// absentees returns the free rows that must be created.
func absentees(changes []sqlstore.Change, applied []sqlstore.Applied) (absent []sqlstore.Change) {
	for i, a := range applied {
		if a.Outcome == sqlstore.Absent {
			absent = append(absent, sqlstore.Change{From: changes[i].From})
		}
	}
	return absent
}

// countOf counts the changes with one of these outcomes.
func countOf(applied []sqlstore.Applied, outcomes ...sqlstore.Outcome) (n int) {
	for i := range applied {
		if slices.Contains(outcomes, applied[i].Outcome) {
			n++
		}
	}
	return n
}

func anyIs(applied []sqlstore.Applied, o sqlstore.Outcome) bool { return countOf(applied, o) > 0 }

func allAre(applied []sqlstore.Applied, o sqlstore.Outcome) bool {
	return countOf(applied, o) == len(applied)
}

// appliesAll asks for a key that has no row. A dialect that does not answer that the key is absent
// applies nothing for many at once.
func (s *Store) appliesAll(ctx context.Context, session *conn.Session) (bool, error) {
	never := sqlstore.Change{
		From: lease.Lease{Key: lease.Reserved + "never"}, To: lease.NewOwner(),
		TTL: rehearsalTTL,
	}
	applied, err := s.d.Apply(ctx, session, []sqlstore.Change{never}, true)
	return !allAre(applied, sqlstore.Alone), err
}

func allAnswer(key string, a sqlstore.Applied, uncertain bool) lease.Acquired {
	switch a.Outcome {
	case sqlstore.Done:
		if err := conn.CheckToken(true, a.Token); err != nil {
			return lease.Acquired{Err: fmt.Errorf("%w: acquire %q", err, key), Unknown: uncertain}
		}
		return lease.Acquired{
			Granted: true, Token: a.Token, Unknown: uncertain, Generation: a.Generation,
		}
	case sqlstore.Held:
		return lease.Acquired{Holder: a.Holder, Unknown: uncertain}
	}
	return lease.Acquired{Possible: true, Unknown: uncertain}
}

// inTheWay reads rows that could not be granted although none was seen held, and writes the reason
// to out. It returns the error of a row that can never be granted. It returns locked if it sees no
// reason: then other clients were taking the rows, each time another one.
func (s *Store) inTheWay(
	ctx context.Context, reqs []lease.AcquireRequest, out []lease.Acquired, locked error,
) error {
	rows, err := s.look(ctx, reqs)
	if err != nil {
		return err
	}
	seen := false
	for i := range reqs {
		row, ok := rows[reqs[i].Key]
		if err := s.never(row); ok && err != nil {
			return fmt.Errorf("acquire all: %q: %w", reqs[i].Key, err)
		}
		out[i] = blocked(&reqs[i], row)
		out[i].Possible = row.Owner.IsZero()
		seen = seen || !out[i].Possible
	}
	if err := s.swallowedAny(ctx, reqs, out); err != nil {
		return err
	}
	if !seen {
		return locked
	}
	return nil
}

// blocked describes a row that stood in the way of a request. The row may be the request's own, by
// an earlier try.
func blocked(r *lease.AcquireRequest, row lease.Record) lease.Acquired {
	a := lease.Acquired{Locked: !row.Held, Unknown: row.Owner == r.Owner}
	if row.Held {
		a.Holder = lease.Holder{Note: row.Note, Remaining: row.Remaining}
	}
	return a
}

func (s *Store) look(ctx context.Context, reqs []lease.AcquireRequest) (map[string]lease.Record, error) {
	keys := keysOf(reqs)
	records, err := s.Inspect(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	return byKeys(records), err
}

// never returns the reason if a row can never be granted.
func (s *Store) never(row lease.Record) error {
	a := sqlstore.Answer{State: sqlstore.StateFree, Token: row.Token}
	switch {
	case row.Err != nil:
		return row.Err
	case row.Placement != s.d.Names().Placement:
		a.State = sqlstore.StateMoved
	case !row.Held && row.Token >= lease.MaxToken-1:
		a.State = sqlstore.StateExhausted
	default:
		return nil
	}
	got, _ := a.Acquired(nil)
	return got.Err
}
