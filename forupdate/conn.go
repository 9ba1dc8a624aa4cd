package forupdate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// lockConn is a connection whose transaction can be a lock.
type lockConn struct {
	d       *sqlstore.Dialect
	session *conn.Session

	mu      sync.Mutex    // one statement at a time
	silence time.Duration // the session's idle timeout; 0: unknown
	used    bool          // it was idle before
	open    bool          // its transaction has begun
	inside  bool          // the timeout was set within the transaction, whose end may reset it
	broken  bool          // after a failure that makes the connection, or its server, suspect
	rested  time.Time     // since when it is idle
}

// begin opens a transaction with this idle timeout. After an error c must be discarded.
func (c *lockConn) begin(ctx context.Context, limit time.Duration) error {
	if err := c.bound(ctx, limit); err != nil || c.open {
		return err
	}
	begin := c.d.Text("hold-begin")
	if begin == "" {
		return nil
	}
	_, err := c.session.Conn().ExecContext(ctx, begin)
	c.open = err == nil
	return err
}

// bound sets the session's idle timeout, unless it is set already.
func (c *lockConn) bound(ctx context.Context, limit time.Duration) error {
	if c.silence == limit {
		return nil
	}
	c.inside = c.open
	if err := c.d.Silence(ctx, c.session, limit); err != nil {
		return err
	}
	c.silence = limit
	return nil
}

// lock locks key's row, or reports that it cannot: there is none, or another has it. If this
// transaction already has the row, a successful lock proves that it still does.
func (c *lockConn) lock(ctx context.Context, key string) (bool, error) {
	var one int
	err := c.session.QueryRow(ctx, c.d.Text("hold-lock"), []any{[]byte(key)}, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	c.broken = err != nil && !sqlstore.Judge(c.d, err).Class.Good()
	return err == nil, err
}

// prove reports whether the transaction still has key's row, and sets the idle timeout from now on.
func (c *lockConn) prove(ctx context.Context, key string, limit time.Duration) bool {
	if err := c.bound(ctx, limit); err != nil {
		return false
	}
	got, err := c.lock(ctx, key)
	return got && err == nil
}

func (c *lockConn) rollback(ctx context.Context) error {
	if c.inside {
		c.silence, c.inside = 0, false
	}
	_, err := c.session.Conn().ExecContext(ctx, c.d.Text("hold-end"))
	return err
}

// errFull says that every connection for held locks holds one.
var errFull = errors.New("every connection for held locks is in use")

// conns are the connections for holds, at most a given number. Some hold a lock, some are used for
// an attempt, and a few are idle.
type conns struct {
	db   DB
	d    *sqlstore.Dialect
	most int

	mu     sync.Mutex
	idle   []*lockConn // the last one used last
	trying int
	held   int
	freed  chan struct{} // closed when there is room
	closed bool
}

// standby is how many idle connections are kept for the next lock. It may be more, up to half of
// all.
const standby = 4

// enter waits while other calls only make attempts, and returns errFull if all connections hold a
// lock.
func (p *conns) enter(ctx context.Context) error {
	for {
		p.mu.Lock()
		freed := p.freed
		switch {
		case p.closed:
			p.mu.Unlock()
			return lease.ErrClosed
		case p.trying+p.held < p.most:
			p.trying++
			p.mu.Unlock()
			return nil
		case p.held >= p.most:
			p.mu.Unlock()
			return errFull
		}
		p.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// count changes how many connections attempt and hold. A caller that waits for an attempt to end
// may find that there is room, or that all hold.
func (p *conns) count(trying, held int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trying, p.held = p.trying+trying, p.held+held
	close(p.freed)
	p.freed = make(chan struct{})
}

// take returns a connection with an open transaction. The server may have ended an idle connection,
// so that take tries another; nothing has been locked on it.
func (p *conns) take(ctx context.Context, limit time.Duration) (*lockConn, error) {
	if err := p.enter(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := graceful(ctx)
	defer cancel()
	for {
		c, err := p.next(ctx)
		if err != nil {
			p.count(-1, 0)
			return nil, err
		}
		if err = c.begin(ctx, limit); err == nil {
			return c, nil
		}
		c.session.Discard()
		if !c.used {
			p.count(-1, 0)
			return nil, err
		}
	}
}

func (p *conns) next(ctx context.Context) (c *lockConn, err error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if c != nil {
		return c, nil
	}
	return p.connect(ctx)
}

func (p *conns) connect(ctx context.Context) (*lockConn, error) {
	raw, err := p.db.Conn(ctx)
	if errors.Is(err, context.DeadlineExceeded) { // ours, not the caller's: see graceful
		return nil, fmt.Errorf("%w: the pool gave no connection within %s (%d of at most %d are in use): a held lock "+
			"takes one, so raise MaxOpenConns, or give New a pool of its own: %v",
			lease.ErrBusy, statementTimeout, p.db.Stats().InUse, p.db.Stats().MaxOpenConnections, err)
	}
	if err != nil {
		return nil, err
	}
	c := &lockConn{d: p.d, session: conn.NewSession(raw)}
	err = p.d.Setup(ctx, c.session)
	if err == nil && c.session.Unprepared {
		err = fmt.Errorf("%w: a lock of forupdate is a transaction that stays open; behind a pooler each would "+
			"keep one of its few server sessions, without an idle timeout: give New a pool that goes to the "+
			"server directly, or use rowlock.Open", lease.ErrUnsupported)
	}
	if err != nil {
		c.session.Discard()
		return nil, err
	}
	return c, nil
}

// giveBack ends the transaction of an attempt.
func (p *conns) giveBack(ctx context.Context, c *lockConn) {
	p.rest(ctx, c)
	p.count(-1, 0)
}

// rest ends the transaction and keeps the connection idle, if it works and there are not enough. It
// never goes back to the pool, because its settings are ours.
func (p *conns) rest(ctx context.Context, c *lockConn) {
	ctx, cancel := graceful(ctx)
	defer cancel()
	if c.broken || c.rollback(ctx) != nil || !p.standBy(c) {
		c.session.Discard()
	}
}

func (p *conns) standBy(c *lockConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= max(standby, p.most/2) {
		return false
	}
	c.used, c.rested = true, time.Now()
	p.idle = append(p.idle, c)
	return true
}

// retire ends connections that were idle for half their idle timeout, before the server ends them:
// the server would log a vanished client.
func (p *conns) retire() {
	var tired []*lockConn
	p.mu.Lock()
	p.idle = slices.DeleteFunc(p.idle, func(c *lockConn) bool {
		old := time.Since(c.rested) > c.silence/2
		if old {
			tired = append(tired, c)
		}
		return old
	})
	p.mu.Unlock()
	for _, c := range tired {
		c.session.Discard()
	}
}

// close ends the idle connections, and returns when those of attempts have ended too.
func (p *conns) close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	close(p.freed)
	p.freed = make(chan struct{})
	p.mu.Unlock()
	for _, c := range idle {
		c.session.Discard()
	}
	p.settle()
}

// settle waits until no attempt is under way.
func (p *conns) settle() {
	for {
		p.mu.Lock()
		freed, trying := p.freed, p.trying
		p.mu.Unlock()
		if trying == 0 {
			return
		}
		<-freed
	}
}

// grace is how long a statement goes on after its caller's context has ended. Statements take a
// millisecond. One that is cut off costs its connection, and the server learns of that late.
const grace = time.Second

// graceful is a context for statements: it ends a grace after ctx, and at the statement timeout.
func graceful(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return out, func() { stop(); cancel() }
}
