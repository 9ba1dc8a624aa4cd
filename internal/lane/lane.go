package lane

import (
	"context"

	"github.com/rowlockdb/rowlock/dialect"
)

// lane is one connection and the goroutine that owns it.
type lane[T any] struct {
	set     *Set[T]
	keeper  bool // renews and releases only
	session *dialect.Session
	wake    chan struct{} // holds one: a lane is in the idle list at most once

	busy  bool   // running something; with turns, guarded by the set's mutex
	turns uint64 // how often it has come for more
}

func (l *lane[T]) takes(k Kind) bool { return k != Acquire || !l.keeper }

func (l *lane[T]) loop() {
	for {
		ops := l.set.next(l)
		if ops == nil {
			l.drop()
			return
		}
		l.run(ops)
		l.set.answer(ops)
	}
}

// serve runs an op of a caller who has borrowed the lane.
func (l *lane[T]) serve(op *Op[T]) {
	defer l.set.giveBack(l)
	op.start()
	l.run([]*Op[T]{op})
}

func (l *lane[T]) run(ops []*Op[T]) {
	ctx, cancel := l.bound()
	defer cancel()
	if err := l.connect(ctx); err != nil {
		for _, op := range ops {
			op.Err = dialect.NotSent{Err: err}
		}
		return
	}
	if !l.set.cfg.Run(ctx, l.session, ops) {
		l.drop()
	}
}

// bound is the context of what runs next. What goes to this machine's disk ends by itself; drivers watch a context that can end
// from another goroutine, which costs more than the statement's own work.
func (l *lane[T]) bound() (context.Context, context.CancelFunc) {
	if l.session != nil && l.session.Local {
		return context.Background(), func() {}
	}
	return context.WithTimeout(l.set.base, l.set.cfg.Timeout)
}

// connect makes sure there is a session. A new connection costs its op a moment; nothing was sent on it yet, so a failure
// is a definite one.
func (l *lane[T]) connect(ctx context.Context) error {
	if l.session != nil {
		return nil
	}
	conn, err := l.set.cfg.DB.Conn(ctx)
	if err != nil {
		return err
	}
	session := dialect.NewSession(conn)
	if err := l.set.cfg.Setup(ctx, session); err != nil {
		session.Discard()
		return err
	}
	l.session = session
	return nil
}

func (l *lane[T]) drop() {
	if l.session != nil {
		l.session.Discard()
		l.session = nil
	}
}
