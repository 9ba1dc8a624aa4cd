package table

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// call is what a lane makes of a task.
type call struct {
	task
	answer
	outcome sqlstore.Outcome // of a batch that it was in
}

// task is what the store has a lane do: one of the hot operations, or anything else on a session. Nobody writes to it once it is a
// lane's, so that it can be asked again whatever has become of the first time.
type task struct {
	acquire  lease.AcquireRequest
	renew    []lease.RenewRequest
	release  lease.Lease
	handOver *lease.HandOver // answered as an acquire
	other    func(context.Context, *sqlstore.Session) error
}

type answer struct {
	acquired lease.Acquired
	renewed  []lease.Renewed
	released lease.Released
}

func (s *Store) execute(ctx context.Context, session *sqlstore.Session, kind lane.Kind, c *call) (err error) {
	switch {
	case c.other != nil:
		return c.other(ctx, session)
	case c.handOver != nil:
		c.acquired, err = s.d.HandOver(ctx, session, *c.handOver)
	case kind == lane.Renew:
		c.renewed, err = s.d.Renew(ctx, session, c.renew)
	case kind == lane.Release:
		session.Process = s.process.alone()
		c.released, err = s.d.Release(ctx, session, c.release)
	default:
		c.acquired, err = s.d.Acquire(ctx, session, s.strategy, c.acquire)
		c.acquired, err = s.confirmed(ctx, session, &c.acquire, c.acquired, err)
	}
	return err
}

// key is what a call that can be merged is about.
func (c *call) key(kind lane.Kind) string {
	switch {
	case c.handOver != nil:
		return c.handOver.From.Key
	case kind == lane.Release:
		return c.release.Key
	}
	return c.acquire.Key
}

// change is the call as an item of a batch.
func (c *call) change(kind lane.Kind) sqlstore.Change {
	switch {
	case c.handOver != nil:
		to := &c.handOver.To
		return sqlstore.Change{From: c.handOver.From, To: to.Owner, Note: to.Note, TTL: to.TTL}
	case kind == lane.Release:
		return sqlstore.Change{From: c.release}
	}
	a := &c.acquire
	return sqlstore.Change{From: lease.Lease{Key: a.Key}, To: a.Owner, Note: a.Note, TTL: a.TTL}
}

// settle answers the call by what became of its item; false if that is no answer.
func (c *call) settle(kind lane.Kind, a sqlstore.Applied) bool {
	c.outcome = a.Outcome
	switch {
	case a.Outcome == sqlstore.Done && kind == lane.Release && c.handOver == nil:
		c.released = lease.Released{Awaited: a.Awaited}
	case a.Outcome == sqlstore.Done:
		c.acquired = lease.Acquired{Granted: true, Token: a.Token}
	case a.Outcome == sqlstore.Held:
		c.acquired = lease.Acquired{Holder: a.Holder}
	case a.Outcome == sqlstore.Gone:
		c.acquired, c.released = lease.Acquired{}, lease.Released{Gone: true}
	default:
		return false
	}
	return true
}
