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

	one [1]*Op[T] // what serve runs

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

// serve runs an op of a caller that has borrowed the lane. If the caller leaves meanwhile, its
// context takes the connection with it.
func (l *lane[T]) serve(ctx context.Context, op *Op[T]) {
	defer l.set.giveBack(l)
	op.start()
	l.one[0] = op
	l.run(ctx, l.one[:])
	l.one[0] = nil
}

func (l *lane[T]) run(ctx context.Context, ops []*Op[T]) {
	end := l.end(ctx, ops)
	if err := l.connect(ctx, end); err != nil {
		for _, op := range ops {
			op.Err = sqlstore.NotSent{Err: err}
		}
		return
	}
	l.set.counts.batches.Add(1)
	l.set.counts.ops.Add(int64(len(ops)))
	if l.bounded(ctx, end, ops) {
		l.set.redial.succeeded()
		return
	}
	l.set.ghosts.add(l.session)
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

// bounded runs ops until end. What goes to this machine's disk ends without that. A connection that
// has a deadline ends by it: drivers watch a context that can end from another goroutine, which
// costs more than the statement's own work.
func (l *lane[T]) bounded(ctx context.Context, end time.Time, ops []*Op[T]) (good bool) {
	switch s := l.session; {
	case s.Local:
		return l.set.cfg.Run(context.Background(), s, ops)
	case s.Limit != nil:
		told := s.Bind(ctx, end)
		defer s.Unbind()
		if good = l.set.cfg.Run(told, s, ops); !good {
			for _, op := range ops {
				op.Err = s.Ended(op.Err)
			}
		}
		return good
	default:
		ctx, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		return l.set.cfg.Run(ctx, s, ops)
	}
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

// connect makes sure there is a session. A new connection costs its op a moment. Nothing was sent
// on it yet, so the outcome of a failure is known.
func (l *lane[T]) connect(ctx context.Context, end time.Time) error {
	if l.session != nil {
		return nil
	}
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
