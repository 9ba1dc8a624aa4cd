package table

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// asideIdle is how long a session beside the pinned connections stays open after its last use.
const asideIdle = 10 * time.Second

// aside is a session beside the pinned connections, for what may wait where no lock may. The first
// use opens it.
type aside struct {
	pool  adapter.Pool
	setup func(context.Context, *conn.Session) error

	turn    chan struct{} // of one entry: the holder of the turn may use what follows
	session *conn.Session
	idle    *time.Timer
	muted   time.Time // until when nothing is sent
	closed  bool

	mute time.Duration // how long nothing is sent after a failure
}

func (a *aside) open(pool adapter.Pool, setup func(context.Context, *conn.Session) error) {
	a.pool, a.setup, a.turn = pool, setup, make(chan struct{}, 1)
}

// use runs f once, after those that came before. An error before f is conn.NotSent.
func (a *aside) use(
	ctx context.Context, f func(ctx context.Context, session *conn.Session) error,
) error {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return conn.NotSent{Err: ctx.Err()}
	}
	defer func() { <-a.turn }()
	if !a.closed && time.Now().Before(a.muted) {
		return nil
	}
	err := a.connect(ctx)
	if err == nil {
		err = f(ctx, a.session)
	} else {
		err = conn.NotSent{Err: err}
	}
	if err != nil {
		a.drop()
		a.muted = time.Now().Add(a.mute)
		return err
	}
	a.rest()
	return nil
}

func (a *aside) connect(ctx context.Context) error {
	if a.closed {
		return lease.ErrClosed
	}
	if a.session != nil {
		return nil
	}
	pinned, err := a.pool.Conn(ctx)
	if err != nil {
		return err
	}
	session := conn.NewSession(pinned)
	if err := a.setup(ctx, session); err != nil {
		session.Discard()
		return err
	}
	a.session = session
	return nil
}

// rest has the session end after a while without use.
func (a *aside) rest() {
	if a.idle != nil {
		a.idle.Reset(asideIdle)
		return
	}
	a.idle = time.AfterFunc(asideIdle, func() {
		a.turn <- struct{}{}
		a.drop()
		<-a.turn
	})
}

// drop closes the session. Callers have the turn.
func (a *aside) drop() {
	if a.session != nil {
		a.session.Discard()
		a.session = nil
	}
}

// close returns when the last use has ended.
func (a *aside) close() {
	a.turn <- struct{}{}
	a.closed = true
	if a.idle != nil {
		a.idle.Stop()
	}
	a.drop()
	<-a.turn
}

// desk is the session of the trace. A pinned connection would wait while the table is locked, and
// while it is read, and locks with the pinned connection.
type desk struct {
	aside
	needs int // how many connections the pool must have, if it has fewer
}

func (k *desk) open(db adapter.Pool, d *sqlstore.Dialect, o Options) {
	k.needs = o.TraceNeeds
	k.aside.open(db, d.SetupTrace)
}
