package forupdate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// conn is a connection whose transaction can be a lock.
type conn struct {
	d       *sqlstore.Dialect
	session *sqlstore.Session

	mu      sync.Mutex    // one statement at a time
	silence time.Duration // the limit that the server knows; 0: not known
	used    bool          // it has been given back before
	open    bool          // its transaction has begun
	inside  bool          // the limit was set within the transaction, whose end may take it back
	broken  bool          // a statement has failed in a way that says nothing good of the connection, or of the server it leads to
	rested  time.Time     // since when it stands by
}

// begin opens a transaction that survives a silence of limit. After an error c is of no more use.
func (c *conn) begin(ctx context.Context, limit time.Duration) error {
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

// bound tells the server the limit, if it knows another.
func (c *conn) bound(ctx context.Context, limit time.Duration) error {
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

// lock locks key's row, or reports that it cannot: there is none, or another has it. If it is this transaction that has the row, that
// proves that it still does.
func (c *conn) lock(ctx context.Context, key string) (bool, error) {
	var one int
	err := c.session.QueryRow(ctx, c.d.Text("hold-lock"), []any{[]byte(key)}, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	c.broken = err != nil && !sqlstore.Judge(c.d, err).Class.Good()
	return err == nil, err
}

// prove reports whether the transaction still has key's row, and has the server bear a silence of limit from now on.
func (c *conn) prove(ctx context.Context, key string, limit time.Duration) bool {
	if err := c.bound(ctx, limit); err != nil {
		return false
	}
	got, err := c.lock(ctx, key)
	return got && err == nil
}

func (c *conn) rollback(ctx context.Context) error {
	if c.inside {
		c.silence, c.inside = 0, false
	}
	_, err := c.session.Conn().ExecContext(ctx, c.d.Text("hold-end"))
	return err
}

// errFull says that every connection for held locks holds one.
var errFull = errors.New("every connection for held locks is in use")

// conns are the connections for holds: most at once, of which some hold, some are being tried with, and a few stand by.
type conns struct {
	db   DB
	d    *sqlstore.Dialect
	most int

	mu     sync.Mutex
	idle   []*conn // the last one used last
	trying int
	held   int
	freed  chan struct{} // closed when there is room
	closed bool
}

// standby is how many connections are kept open for the next lock: at least these, and at most half of those that there may be.
const standby = 4

func newConns(db DB, d *sqlstore.Dialect, most int) *conns {
	return &conns{db: db, d: d, most: most, freed: make(chan struct{})}
}

// enter waits while others only try, and returns errFull if all hold.
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

// leave makes room, of one who tried or of one who held.
func (p *conns) leave(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held {
		p.held--
	} else {
		p.trying--
	}
	close(p.freed)
	p.freed = make(chan struct{})
}

// keep makes a hold of a connection that was tried with.
func (p *conns) keep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trying--
	p.held++
	close(p.freed) // whoever waits for a try to end may have to be told that all is full
	p.freed = make(chan struct{})
}

// take returns a connection with an open transaction. A connection that stood by may have been ended by the server, so another is
// tried; nothing has been locked on it.
func (p *conns) take(ctx context.Context, limit time.Duration) (*conn, error) {
	if err := p.enter(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := graceful(ctx)
	defer cancel()
	for {
		c, err := p.next(ctx)
		if err != nil {
			p.leave(false)
			return nil, err
		}
		if err = c.begin(ctx, limit); err == nil {
			return c, nil
		}
		c.session.Discard()
		if !c.used {
			p.leave(false)
			return nil, err
		}
	}
}

func (p *conns) next(ctx context.Context) (c *conn, err error) {
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

func (p *conns) connect(ctx context.Context) (*conn, error) {
	raw, err := p.db.Conn(ctx)
	if errors.Is(err, context.DeadlineExceeded) { // ours, not the caller's: see graceful
		return nil, fmt.Errorf("%w: the pool gave no connection within %s (%d of at most %d are in use): a held lock takes one, so raise MaxOpenConns, or give New a pool of its own: %v",
			lease.ErrBusy, statementTimeout, p.db.Stats().InUse, p.db.Stats().MaxOpenConnections, err)
	}
	if err != nil {
		return nil, err
	}
	c := &conn{d: p.d, session: sqlstore.NewSession(raw)}
	err = p.d.Setup(ctx, c.session)
	if err == nil && c.session.Unprepared {
		err = fmt.Errorf("%w: forupdate holds a lock by a transaction that stays open, which behind a pooler would keep one of its few sessions of the server for "+
			"each lock, and cannot bound its silence: give New a pool that goes to the server directly, or use rowlock.Open", lease.ErrUnsupported)
	}
	if err != nil {
		c.session.Discard()
		return nil, err
	}
	return c, nil
}

// giveBack ends the transaction of a connection that was tried with.
func (p *conns) giveBack(ctx context.Context, c *conn) {
	p.rest(ctx, c)
	p.leave(false)
}

// rest ends the transaction and has the connection stand by, if it is any good and there are not enough. It is never given back to
// the pool: its settings are ours.
func (p *conns) rest(ctx context.Context, c *conn) {
	ctx, cancel := graceful(ctx)
	defer cancel()
	if c.broken || c.rollback(ctx) != nil || !p.standBy(c) {
		c.session.Discard()
	}
}

func (p *conns) standBy(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= max(standby, p.most/2) {
		return false
	}
	c.used, c.rested = true, time.Now()
	p.idle = append(p.idle, c)
	return true
}

// retire ends connections that have stood by for so long that the server is about to: it would take that for a client that has gone, and
// say so in its log.
func (p *conns) retire() {
	var tired []*conn
	p.mu.Lock()
	p.idle = slices.DeleteFunc(p.idle, func(c *conn) bool {
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

// close ends the connections that stand by, and returns when those that are being tried with have ended too.
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

// settle waits until nobody tries any more.
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

// grace is how long a statement goes on after its caller has been told to stop. Statements take a millisecond; one that is cut off
// costs its connection, and the server learns of that later than we do.
const grace = time.Second

// graceful is a context for statements: it ends a grace after ctx, and at the statement timeout.
func graceful(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return out, func() { stop(); cancel() }
}
