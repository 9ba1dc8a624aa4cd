package table

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// mostMerged is how many pending operations become one statement. Measured on PostgreSQL, one of a
// batch of 128 takes 8 µs and one of 512 takes 7. What arrives between two batches waits for the
// first.
const mostMerged = 512

// enough ops for a batch of its own: with so many, the fixed costs of a batch are small.
const enough = 32

// gate is how many ops another lane waits for at most, if there is another. Sessions that a pooler
// shares were not measured.
func (e *engine) gate() int {
	if e.d.Pooled() || e.d.OneWriter {
		return 0
	}
	return enough
}

// run executes ops. A single one is its own fast statement. Several are one statement and one
// commit, as far as that is simple; run defers the others, to be run alone.
func (e *engine) run(ctx context.Context, session *sqlstore.Session, ops []*op) (good bool) {
	var err error
	switch {
	case len(ops) == 1:
		err = e.execute(ctx, session, ops[0].Kind, &ops[0].Body)
		ops[0].Err = err
	case ops[0].Kind == lane.Renew:
		err = e.renewTogether(ctx, session, ops)
	default:
		err = e.applyTogether(ctx, session, ops)
	}
	if e.d.Expects && ops[0].Kind != lane.Renew {
		e.expected.grants(ops...)
	}
	// Of a batch, what grants runs again alone, and is refused again. Releases need no other
	// connection.
	unlearned := len(ops) == 1 && era.IsUnlearned(err)
	return err == nil || sqlstore.Judge(e.d, err).Class.Good() && !unlearned
}

func (e *engine) execute(ctx context.Context, session *sqlstore.Session, kind lane.Kind, c *call) (
	err error,
) {
	switch {
	case c.other != nil:
		return c.other(ctx, session)
	case c.within != nil:
		c.acquired, err = e.passSlot(ctx, session, c)
	case c.handOver != nil:
		c.acquired, err = e.d.HandOver(ctx, session, *c.handOver)
	case kind == lane.Renew:
		c.renewed, err = e.d.Renew(ctx, session, c.renew)
	case kind == lane.Release:
		session.Process, session.Channel = e.process.alone(), e.channel
		c.released, err = e.d.Release(ctx, session, c.release)
	default:
		c.acquired, err = e.d.Acquire(ctx, session, e.strategy, c.acquire)
		c.acquired, err = e.confirmed(ctx, session, &c.acquire, c.acquired, err)
	}
	return err
}
