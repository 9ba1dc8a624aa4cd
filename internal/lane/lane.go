package lane

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// lane is one connection and the goroutine that owns it.
type lane[T any] struct {
	set     *Set[T]
	keeper  bool // renews and releases only
	session *sqlstore.Session
	wake    chan struct{} // holds one: a lane is in the idle list at most once

	one [1]*Op[T] // that its caller runs; nil if none does

	// Guarded by the set's mutex:

	busy    bool   // running something
	merges  bool   // something that others may wait for
	running int    // so many ops
	turns   uint64 // how often it has come for more
}

func (l *lane[T]) takes(k Kind) bool { return k != Acquire || !l.keeper }

func (l *lane[T]) loop() {
	for {
		ops := l.set.next(l)
		if ops == nil {
			l.drop()
			return
		}
		l.run(context.Background(), ops) // each caller leaves by itself
		l.set.answer(ops)
	}
}

// run runs ops to their end, or to that of ctx, which takes the connection with it.
func (l *lane[T]) run(ctx context.Context, ops []*Op[T]) {
	end := l.end(ctx, ops)
	if l.session == nil {
		if err := l.connect(ctx, end); err != nil {
			for _, op := range ops {
				op.Err = sqlstore.NotSent{Err: err}
			}
			return
		}
	}
	l.set.counts.batches.Add(1)
	l.set.counts.ops.Add(int64(len(ops)))
	s, good := l.session, true
	within := s.Bind(ctx, end)
	if one := ops[0]; len(ops) == 1 {
		if one.Err = one.Run(within, s, one); one.Err != nil {
			good = l.set.cfg.Good(one.Err)
		}
	} else {
		good = l.set.cfg.Together(within, s, ops)
	}
	if good {
		s.Unbind()
		if l.set.redial.hurt.Load() {
			l.set.redial.succeeded()
		}
		return
	}
	for _, op := range ops {
		op.Err = s.Ended(op.Err)
	}
	s.Unbind()
	l.set.ghosts.add(s)
	l.drop()
	l.misled(ops)
}

// end is when what runs next has taken too long.
func (l *lane[T]) end(ctx context.Context, ops []*Op[T]) time.Time {
	now := time.Now()
	end := now.Add(l.set.cfg.Timeout)
	if len(ops) == 1 {
		end = now.Add(max(l.set.cfg.Timeout, ops[0].Patience))
	}
	if len(ops) == 1 && !ops[0].Until.IsZero() && ops[0].Until.Before(end) {
		end = ops[0].Until // in a batch, each caller leaves by itself
	}
	if callers, ok := ctx.Deadline(); ok && callers.Before(end) {
		end = callers
	}
	return end
}

// misled notes that the server takes no writes: the next connection may lead to the same.
func (l *lane[T]) misled(ops []*Op[T]) {
	if l.set.cfg.ReadOnly == nil {
		return
	}
	for _, op := range ops {
		if op.Err != nil && l.set.cfg.ReadOnly(op.Err) {
			l.set.redial.fail()
			return
		}
	}
}

// connect makes a session. A new connection costs its op a moment. Nothing was sent on it yet, so
// the outcome of a failure is known.
func (l *lane[T]) connect(ctx context.Context, end time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	return l.open(ctx)
}

func (l *lane[T]) open(ctx context.Context) error {
	if err := l.set.redial.rest(ctx); err != nil {
		return err
	}
	err := l.dial(ctx)
	switch {
	case err == nil:
		l.set.redial.connected()
	case ctx.Err() == nil: // or its caller has left, which says nothing, or it has taken long enough
		l.set.redial.fail()
	}
	return err
}

func (l *lane[T]) dial(ctx context.Context) error {
	conn, err := l.set.cfg.DB.Conn(ctx)
	if err != nil {
		return err
	}
	session := sqlstore.NewSession(conn)
	session.Sent = &l.set.counts.statements
	if err := l.set.cfg.Setup(ctx, session); err != nil {
		session.Discard()
		return err
	}
	l.session = session
	l.set.counts.open.Add(1)
	return nil
}

func (l *lane[T]) drop() {
	if l.session != nil {
		l.session.Discard()
		l.session = nil
		l.set.counts.open.Add(-1)
	}
}
