package table

import (
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// passSlot runs one hand-over of a slot.
func (e *engine) passSlot(
	ctx context.Context, session *sqlstore.Session, c *call,
) (lease.Acquired, error) {
	applied, err := e.d.ApplyWithin(ctx, session, []sqlstore.Change{c.change(lane.Release)}, c.within)
	if err != nil || applied[0].Outcome != sqlstore.Done {
		return lease.Acquired{}, err
	}
	return lease.Acquired{Granted: true, Token: applied[0].Token}, nil
}

// passSlots runs the hand-overs of slots among ops, in one statement for each limit, and returns
// the other ops. A slot that is not handed over, for whatever reason, is to be released.
func (e *engine) passSlots(ctx context.Context, session *sqlstore.Session, ops []*op) (
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
			ctx context.Context, session *sqlstore.Session, changes []sqlstore.Change,
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
