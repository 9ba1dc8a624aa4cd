package table

import (
	"cmp"
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// applyTogether runs releases, hand-overs and acquires. Keys without a row take a second statement,
// or the first one, by strategy.
func (e *engine) applyTogether(ctx context.Context, session *conn.Session, ops []*op) (err error) {
	session.Process, session.Channel = e.process.alone(), e.channel
	type step = func(context.Context, *conn.Session, []*op) ([]*op, error)
	steps := []step{e.apply, e.create}
	if e.strategy == adapter.Insert {
		slices.Reverse(steps)
	}
	if e.pipes(session, len(ops)) {
		steps = append([]step{e.pipe}, steps...)
	}
	left, err := e.passSlots(ctx, session, eachKeyOnce(ops))
	if err != nil {
		later(left, true)
		return err
	}
	for _, step := range steps {
		if left, err = step(ctx, session, left); err != nil {
			break
		}
	}
	later(left, true)
	return err
}

// apply runs what needs a row. left is what it could not do.
func (e *engine) apply(ctx context.Context, session *conn.Session, ops []*op) (left []*op, err error) {
	return e.together(ctx, session, ops, func(ctx context.Context, session *conn.Session,
		changes []sqlstore.Change,
	) ([]sqlstore.Applied, error) {
		if !e.d.Expects {
			return e.d.Apply(ctx, session, changes, false)
		}
		e.expected.tell(changes)
		applied, err := e.d.Apply(ctx, session, changes, false)
		if err == nil {
			e.expected.learn(changes, applied)
		}
		return applied, err
	})
}

// create makes rows that are absent or expected to be absent. left is what it could not do, and
// what needs no new row.
func (e *engine) create(ctx context.Context, session *conn.Session, ops []*op) (left []*op, err error) {
	var absent []*op
	for _, op := range ops {
		if op.Kind == conn.Acquire &&
			(e.strategy == adapter.Insert || op.Body.outcome == sqlstore.Absent) {
			absent = append(absent, op)
		} else {
			left = append(left, op)
		}
	}
	again, err := e.together(ctx, session, absent, e.d.Create)
	return append(left, again...), err
}

// together runs one statement for ops and answers each. left are those that the statement left
// unanswered.
func (e *engine) together(ctx context.Context, session *conn.Session, ops []*op,
	statement func(context.Context, *conn.Session, []sqlstore.Change) ([]sqlstore.Applied,
		error),
) (left []*op, err error) {
	if len(ops) == 0 {
		return nil, nil
	}
	slices.SortFunc(ops, byKey) // one order for all batches: no deadlocks
	changes := make([]sqlstore.Change, len(ops))
	for i, op := range ops {
		changes[i] = op.Body.change(op.Kind)
	}
	applied, err := statement(ctx, session, changes)
	if err != nil {
		e.failed(ops, err)
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

// eachKeyOnce defers all but the first op for each key: the next finds what the first has left, in
// another statement.
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

// later defers ops. Nothing of them was applied.
func later(ops []*op, alone bool) {
	for _, op := range ops {
		op.Again(alone)
	}
}

// failed handles an error of a statement for many ops. What was certainly not applied runs again
// one by one, so that an op that cannot be applied, such as a note that is no text, fails alone. If
// that is not certain, each caller gets the error, and asks again alone.
func (e *engine) failed(ops []*op, err error) {
	switch sqlstore.Judge(e.d, err).Class {
	case sqlstore.Conflict, sqlstore.Refused:
		later(ops, true)
	default:
		for _, op := range ops {
			op.Err = err
		}
	}
}

// renewTogether renews for several calls, if no lease comes twice. It defers calls that do not fit.
func (e *engine) renewTogether(ctx context.Context, session *conn.Session, ops []*op) error {
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
	slices.SortFunc(asked,
		func(a, b renewal) int { return cmp.Compare(a.request().Key, b.request().Key) })
	reqs := make([]lease.RenewRequest, len(asked))
	for i, a := range asked {
		if reqs[i] = *a.request(); i > 0 && reqs[i].Key == reqs[i-1].Key {
			later(ops, true)
			return nil
		}
	}
	renewed, err := e.d.Renew(ctx, session, reqs)
	if err != nil {
		e.failed(ops, err)
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

const (
	// mostPiped is how many ops are sent as plain statements with one commit. The statement for
	// many costs as much as a dozen of them, and little more for each.
	mostPiped = 16
	// unpipedFor is how many batches have no plain statements after one whose plain statements
	// were mostly in vain: of keys that are held, or have no row.
	unpipedFor = 8
)

// pipes reports whether n ops are to be tried by their plain statements first.
func (e *engine) pipes(session *conn.Session, n int) bool {
	if e.d.Piper == nil || session.Wire == nil || n > mostPiped {
		return false
	}
	if e.unpiped.Load() <= 0 {
		return true
	}
	e.unpiped.Add(-1) // of two pinned connections at once, one may count below 0
	return false
}

// pipe sends the plain statements of ops together. left is what they could not do.
func (e *engine) pipe(ctx context.Context, session *conn.Session, ops []*op) (left []*op, err error) {
	tried := len(ops)
	left, err = e.together(ctx, session, ops, func(ctx context.Context, session *conn.Session,
		changes []sqlstore.Change,
	) ([]sqlstore.Applied, error) {
		return e.d.Piper.Pipe(ctx, session, e.strategy, changes)
	})
	if 2*len(left) > tried {
		e.unpiped.Store(unpipedFor)
	}
	return left, err
}

// passSlot runs one hand-over of a slot.
func (e *engine) passSlot(ctx context.Context, session *conn.Session, c *call) (lease.Acquired, error) {
	applied, err := e.d.ApplyWithin(ctx, session, []sqlstore.Change{c.change(conn.Release)}, c.within)
	if err != nil || applied[0].Outcome != sqlstore.Done {
		return lease.Acquired{}, err
	}
	return lease.Acquired{Granted: true, Token: applied[0].Token}, nil
}

// passSlots runs the hand-overs of slots among ops, in one statement for each limit, and returns
// the other ops. A slot that is not handed over, for whatever reason, is to be released.
func (e *engine) passSlots(ctx context.Context, session *conn.Session, ops []*op) (
	rest []*op, err error,
) {
	if !slices.ContainsFunc(ops, func(o *op) bool { return o.Body.within != nil }) {
		return ops, nil
	}
	limits := make(map[sqlstore.Within][]*op)
	rest = ops[:0]
	for _, op := range ops {
		if w := op.Body.within; w != nil {
			limits[*w] = append(limits[*w], op)
		} else {
			rest = append(rest, op)
		}
	}
	for within, some := range limits {
		if err != nil {
			later(some, true)
			continue
		}
		_, err = e.together(ctx, session, some, func(
			ctx context.Context, session *conn.Session, changes []sqlstore.Change,
		) ([]sqlstore.Applied, error) {
			applied, err := e.d.ApplyWithin(ctx, session, changes, &within)
			for i := range applied {
				if applied[i].Outcome != sqlstore.Done {
					applied[i].Outcome = sqlstore.Gone
				}
			}
			return applied, err
		})
	}
	return rest, err
}
