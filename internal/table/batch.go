package table

import (
	"cmp"
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// mostMerged is how many pending operations become one statement. Measured on PostgreSQL, one of a batch of 128 takes 8 µs and one
// of 512 takes 7; and what comes in between two batches waits for the first.
const mostMerged = 512

type op = lane.Op[call]

// run executes ops. A lone one is its own fast statement; several are one statement and one commit as far as that is simple, and what
// is not is put off, to be run alone.
func (s *Store) run(ctx context.Context, session *sqlstore.Session, ops []*op) (good bool) {
	var err error
	switch {
	case len(ops) == 1:
		err = s.execute(ctx, session, ops[0].Kind, &ops[0].Body)
		ops[0].Err = err
	case ops[0].Kind == lane.Renew:
		err = s.renewTogether(ctx, session, ops)
	default:
		err = s.applyTogether(ctx, session, ops)
	}
	return err == nil || sqlstore.Judge(s.d, err).Class.Good()
}

// applyTogether runs releases, hand-overs and acquires. Keys without a row take a second statement, or the first, by strategy.
func (s *Store) applyTogether(ctx context.Context, session *sqlstore.Session, ops []*op) (err error) {
	session.Process = s.process.alone()
	steps := []func(context.Context, *sqlstore.Session, []*op) ([]*op, error){s.apply, s.create}
	if s.strategy == sqlstore.Insert {
		slices.Reverse(steps)
	}
	left := eachKeyOnce(ops)
	for _, step := range steps {
		if left, err = step(ctx, session, left); err != nil {
			break
		}
	}
	later(left, true)
	return err
}

// apply runs what needs a row. left is what it could not do.
func (s *Store) apply(ctx context.Context, session *sqlstore.Session, ops []*op) (left []*op, err error) {
	return s.together(ctx, session, ops, func(ctx context.Context, session *sqlstore.Session, changes []sqlstore.Change) ([]sqlstore.Applied, error) {
		return s.d.Apply(ctx, session, changes, false)
	})
}

// create makes the rows that are not there, or of which that is to be expected. left is what it could not do, and what is not its own.
func (s *Store) create(ctx context.Context, session *sqlstore.Session, ops []*op) (left []*op, err error) {
	var absent []*op
	for _, op := range ops {
		if op.Kind == lane.Acquire && (s.strategy == sqlstore.Insert || op.Body.outcome == sqlstore.Absent) {
			absent = append(absent, op)
		} else {
			left = append(left, op)
		}
	}
	again, err := s.together(ctx, session, absent, s.d.Create)
	return append(left, again...), err
}

// together runs one statement for ops and gives each its answer. left are those to which it was none.
func (s *Store) together(ctx context.Context, session *sqlstore.Session, ops []*op,
	statement func(context.Context, *sqlstore.Session, []sqlstore.Change) ([]sqlstore.Applied, error),
) (left []*op, err error) {
	if len(ops) == 0 {
		return nil, nil
	}
	slices.SortFunc(ops, byKey) // one order for all: no deadlocks
	changes := make([]sqlstore.Change, len(ops))
	for i, op := range ops {
		changes[i] = op.Body.change(op.Kind)
	}
	applied, err := statement(ctx, session, changes)
	if err != nil {
		s.failed(ops, err)
		return nil, err
	}
	for i, op := range ops {
		if !op.Body.settle(op.Kind, applied[i]) {
			left = append(left, op)
		}
	}
	return left, nil
}

func byKey(a, b *op) int { return cmp.Compare(a.Body.key(a.Kind), b.Body.key(b.Kind)) }

// eachKeyOnce puts off all but the first op for each key: the next finds what the first has left, in another statement.
func eachKeyOnce(ops []*op) []*op {
	slices.SortStableFunc(ops, byKey)
	once := make([]*op, 0, len(ops))
	for i, op := range ops {
		if i > 0 && byKey(ops[i-1], op) == 0 {
			op.Again(false)
			continue
		}
		once = append(once, op)
	}
	return once
}

// later puts ops off. Nothing of them was applied.
func later(ops []*op, alone bool) {
	for _, op := range ops {
		op.Again(alone)
	}
}

// failed deals with a statement for many that failed. What has certainly not been applied is run again one by one, so that what cannot
// be applied, as a note that is no text, fails by itself. Where that is not certain each caller is told, and asks again alone.
func (s *Store) failed(ops []*op, err error) {
	switch sqlstore.Judge(s.d, err).Class {
	case sqlstore.Conflict, sqlstore.Refused:
		later(ops, true)
	default:
		for _, op := range ops {
			op.Err = err
		}
	}
}

// renewTogether renews what several calls ask for, if no lease comes twice. Calls for which there is no room are put off.
func (s *Store) renewTogether(ctx context.Context, session *sqlstore.Session, ops []*op) error {
	var asked []renewal
	for i, op := range ops {
		if i > 0 && len(asked)+len(op.Body.renew) > mostMerged {
			later(ops[i:], false)
			ops = ops[:i]
			break
		}
		for n := range op.Body.renew {
			asked = append(asked, renewal{op, n})
		}
	}
	slices.SortFunc(asked, func(a, b renewal) int { return cmp.Compare(a.request().Key, b.request().Key) })
	reqs := make([]lease.RenewRequest, len(asked))
	for i, a := range asked {
		if reqs[i] = *a.request(); i > 0 && reqs[i].Key == reqs[i-1].Key {
			later(ops, true)
			return nil
		}
	}
	renewed, err := s.d.Renew(ctx, session, reqs)
	if err != nil {
		s.failed(ops, err)
		return err
	}
	for _, op := range ops {
		op.Body.renewed = make([]lease.Renewed, len(op.Body.renew))
	}
	for i, a := range asked {
		a.op.Body.renewed[a.n] = renewed[i]
	}
	return nil
}

// renewal is the nth lease of a call.
type renewal struct {
	op *op
	n  int
}

func (r renewal) request() *lease.RenewRequest { return &r.op.Body.renew[r.n] }
