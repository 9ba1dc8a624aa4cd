package conn

import (
	"context"
	"time"
)

// pinned is one session and the goroutine that owns it.
type pinned[T any] struct {
	set     *Set[T]
	keeper  bool // renews and releases only
	session *Session
	wake    chan struct{} // holds one: it is in the idle list at most once

	one     [1]*Op[T] // that its caller runs; nil if none does
	retires bool      // it is woken to close its session
	unused  int       // so many times it was found idle since it ran something; see old

	// Guarded by the set's mutex:

	busy    bool   // running something
	merges  bool   // something that others may wait for
	running int    // so many ops
	runs    uint64 // how often it has come for more
}

func (p *pinned[T]) takes(k Kind) bool { return k != Acquire || !p.keeper }

func (p *pinned[T]) loop() {
	for {
		ops := p.set.next(p)
		if ops == nil {
			p.drop()
			return
		}
		p.run(context.Background(), ops) // each caller leaves by itself
		p.set.answer(ops)
	}
}

// run runs ops to their end, or to that of ctx, which takes the connection with it.
func (p *pinned[T]) run(ctx context.Context, ops []*Op[T]) {
	end := p.end(ctx, ops)
	if p.unused >= old && p.session != nil {
		p.prove(ctx, end)
	}
	p.unused = 0
	if p.session == nil {
		if err := p.connect(ctx, end); err != nil {
			for _, op := range ops {
				op.Err = Told(ctx, NotSent{Err: err})
			}
			return
		}
	}
	p.set.counts.batches.Add(1)
	p.set.counts.ops.Add(int64(len(ops)))
	s, good := p.session, true
	within := s.Bind(ctx, end)
	if one := ops[0]; len(ops) == 1 {
		if one.Err = one.Run(within, s, one); one.Err != nil {
			good = p.set.cfg.Good(one.Err)
		}
	} else {
		good = p.set.cfg.Together(within, s, ops)
	}
	if good {
		s.Unbind()
		if p.set.redial.hurt.Load() {
			p.set.redial.succeeded()
		}
		return
	}
	for _, op := range ops {
		op.Err = Told(ctx, s.Ended(op.Err))
	}
	s.Unbind()
	p.set.dropped.add(s)
	p.drop()
	p.misled(ops)
}

// end is when what runs next has taken too long.
func (p *pinned[T]) end(ctx context.Context, ops []*Op[T]) time.Time {
	now := time.Now()
	end := now.Add(p.set.cfg.Timeout)
	if len(ops) == 1 {
		end = now.Add(max(p.set.cfg.Timeout, ops[0].Patience))
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
func (p *pinned[T]) misled(ops []*Op[T]) {
	if p.set.cfg.ReadOnly == nil {
		return
	}
	for _, op := range ops {
		if op.Err != nil && p.set.cfg.ReadOnly(op.Err) {
			p.set.redial.fail()
			return
		}
	}
}

// connect makes a session. A new connection costs its op a moment. Nothing was sent on it yet, so
// the outcome of a failure is known.
func (p *pinned[T]) connect(ctx context.Context, end time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	return p.open(ctx)
}

func (p *pinned[T]) open(ctx context.Context) error {
	if err := p.set.redial.rest(ctx); err != nil {
		return err
	}
	err := p.dial(ctx)
	switch {
	case err == nil:
		p.set.redial.connected()
	case ctx.Err() == nil: // or its caller has left, which says nothing, or it has taken long enough
		p.set.redial.fail()
	}
	return err
}

func (p *pinned[T]) dial(ctx context.Context) error {
	conn, err := p.set.cfg.DB.Conn(ctx)
	if err != nil {
		return err
	}
	session := NewSession(conn)
	session.Sent = &p.set.counts.statements
	if err := p.set.cfg.Setup(ctx, session); err != nil {
		session.Discard()
		return err
	}
	p.session, p.unused = session, 0
	p.set.counts.open.Add(1)
	return nil
}

func (p *pinned[T]) drop() {
	if p.session != nil {
		p.session.Discard()
		p.session = nil
		p.set.counts.open.Add(-1)
	}
}
