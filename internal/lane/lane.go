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
		for _, op := range ops {
			if !op.finish() && l.set.cfg.Orphan != nil {
				l.set.cfg.Orphan(op)
			}
		}
	}
}

func (l *lane[T]) run(ops []*Op[T]) {
	ctx, cancel := context.WithTimeout(l.set.base, l.set.cfg.Timeout)
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
