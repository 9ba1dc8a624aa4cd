package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	dialTimeout = 3 * time.Second
	// A session waits for beat. Without an answer after another pong the connection is lost.
	beat, pong = 4 * time.Second, 3 * time.Second
	// crowded is for how long a session that finds no name does not try again.
	crowded = time.Minute
	// settle is how long after its request a session certainly waits, on a machine at ease.
	settle = 2 * time.Millisecond
)

// listener is a session that waits for a user lock, the door, and that KILL QUERY wakes. It holds
// another user lock, so that a releaser finds it by a name and not by a number, which could be
// stale. It never goes back to its pool: a KILL that comes late would end another user's statement.
//
// It waits and does not SLEEP, because a KILL of a MariaDB session that sleeps can hang for 2 s,
// and every SLEEP of the server with it; see decision 0039.
type listener struct {
	d       *database
	s       *conn.Session
	pool    adapter.Pool
	channel string
	process lease.Owner // zero: it hears what is announced to all
	heard   func(key string, chosen lease.Owner)

	names    []string // under which it may listen
	place    int      // of its name in names
	children []string // names of sessions that it wakes in turn
	looked   time.Time
	deaf     bool // a KILL may have come while the session did not wait
	doorkeeper
}

// doorkeeper has the session that holds the lock for which all listeners wait: most have none.
type doorkeeper struct {
	door  *conn.Session
	asked time.Time // when the door was last seen to be alive
}

// Listen borrows one or two connections of the pool and drops them afterwards. It hears that a key
// was released, and not which: KILL QUERY carries no message.
func (d *database) Listen(
	ctx context.Context, pool adapter.Pool, channel string, process lease.Owner,
	heard func(key string, chosen lease.Owner),
) error {
	if pool == nil {
		return fmt.Errorf(
			"%w: no connection can be spared to listen on: raise MaxOpenConns", lease.ErrUnsupported)
	}
	e := &listener{d: d, pool: pool, channel: channel, process: process, heard: heard}
	e.names = addresses(channel, process)
	defer e.end()
	if err := e.connect(ctx); errors.Is(err, errCrowded) {
		e.end()
		return rest(ctx, err)
	} else if err != nil {
		return err
	}
	e.heard("", lease.Owner{})
	e.deaf = true
	for {
		if err := e.next(ctx); err != nil {
			return err
		}
	}
}

// rest returns err after a while in which the process polls.
func rest(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(crowded):
		return err
	}
}

// connect opens the session that listens, and that of the door if no session holds it.
func (e *listener) connect(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if e.s, err = e.session(ctx); err != nil {
		return err
	}
	if e.door == nil {
		n, err := e.first(ctx, []string{door(e.channel)})
		if err != nil {
			return err
		}
		if n > 0 {
			e.hold()
			if e.s, err = e.session(ctx); err != nil {
				return err
			}
		}
	}
	return e.begin(ctx)
}

// hold makes the session that has got the door's lock the door.
func (e *listener) hold() {
	if e.door != nil {
		e.door.Discard()
	}
	e.door, e.s, e.asked = e.s, nil, time.Now()
}

func (e *listener) end() {
	for _, s := range []*conn.Session{e.s, e.door} {
		if s != nil {
			s.Discard()
		}
	}
	e.s, e.door = nil, nil
}

func (e *listener) session(ctx context.Context) (*conn.Session, error) {
	pinned, err := e.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	s := conn.NewSession(pinned)
	if err := setup(ctx, s); err != nil {
		s.Discard()
		return nil, err
	}
	return s, nil
}

// begin takes a name.
func (e *listener) begin(ctx context.Context) error {
	var own int64
	// ProxySQL answers exactly this text itself, with a number of its own.
	err := e.s.Conn().QueryRowContext(ctx, `SELECT CONNECTION_ID()`).Scan(&own)
	if err != nil {
		return err
	}
	taken, err := e.take(ctx, e.names)
	switch {
	case err != nil:
		return err
	case !taken && e.process.IsZero():
		return fmt.Errorf("%w: there are %d", errCrowded, len(e.names))
	case !taken: // the connection was cut, and the server has not noticed
		return errNameTaken
	}
	var holder int64
	err = e.s.QueryRow(ctx, e.d.Text("listener"), []any{e.names[e.place]}, &holder)
	if err == nil && holder != own {
		err = errShared
	}
	return err
}

// setup has the server end the session soon if this process is stopped. A limit on statements must
// not end the wait, and the wait is no slow statement.
func setup(ctx context.Context, s *conn.Session) error {
	version, _, err := meet(ctx, s.Conn())
	if err != nil {
		return err
	}
	if _, err := s.Conn().ExecContext(ctx,
		`SET SESSION `+meaningOf(version)+`, wait_timeout = 10`); err != nil {
		return err
	}
	// A server may reserve this to administrators.
	_, _ = s.Conn().ExecContext(ctx, `SET SESSION long_query_time = 86400`)
	return ctx.Err()
}

// take takes the first name that is free, if one is.
func (e *listener) take(ctx context.Context, names []string) (taken bool, err error) {
	n, err := e.first(ctx, names)
	if err == nil && n > 0 {
		e.place = n - 1
	}
	return n > 0, err
}

// first takes the first of the locks that is free, and returns its position from 1; 0: none is.
func (e *listener) first(ctx context.Context, names []string) (int, error) {
	var n int64
	err := e.s.QueryRow(ctx, e.d.Text("listen-as"), []any{list(names)}, &n)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err == nil && (n < 1 || n > int64(len(names))):
		return 0, fmt.Errorf("%w: listen: name %d of %d", lease.ErrCorrupt, n, len(names))
	}
	return int(n), err
}

var (
	errCrowded   = errors.New("as many sessions listen as have names")
	errNameTaken = errors.New("the session before still listens")
	errShared    = fmt.Errorf("%w: the pool leads through a proxy that shares sessions",
		lease.ErrUnsupported)
)

// next waits until it is woken. It notices within beat+pong that the connection is lost.
func (e *listener) next(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, beat+pong)
	defer cancel()
	var n int64
	catchUp := e.catchUp()
	err := e.s.QueryRow(waiting, e.d.Text("listen"),
		[]any{e.names[e.place], door(e.channel), int64(beat / time.Second)}, &n)
	catchUp()
	woken := isNumber(err, 1317) || err == nil && n == 2
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case woken:
		err = nil
	case err == nil && n == -1:
		return errShared
	case err == nil && n == -2:
		return fmt.Errorf("%w: the server has become a replica", lease.ErrReadOnly)
	case err == nil && n == 1:
		return e.keep(ctx)
	}
	if e.deaf = woken; err == nil && woken {
		e.heard("", e.process)
	}
	if err == nil {
		e.keepDoor(waiting)
		if e.process.IsZero() {
			err = e.relay(waiting, woken)
		}
	}
	return err
}

// keep makes the session the door, because the one before has ended, and listens on another.
func (e *listener) keep(ctx context.Context) error {
	var released int64
	err := e.s.QueryRow(ctx, e.d.Text("unlisten"), []any{e.names[e.place]}, &released)
	if err != nil {
		return err
	}
	e.hold()
	if err := e.connect(ctx); err != nil {
		return err
	}
	e.heard("", e.process) // what came between
	e.deaf = true
	return nil
}

// keepDoor keeps the server from ending the door's session. If it has ended, one of the listeners
// gets its lock.
func (k *doorkeeper) keepDoor(ctx context.Context) {
	if k.door == nil || time.Since(k.asked) < beat/2 {
		return
	}
	k.asked = time.Now()
	if err := k.door.Conn().PingContext(ctx); err != nil {
		k.door.Discard()
		k.door = nil
	}
}

// catchUp reports once more, when the session waits again, because a KILL between two waits has no
// effect. The function that it returns ends this.
func (e *listener) catchUp() (end func()) {
	if !e.deaf {
		return func() {}
	}
	done := make(chan struct{})
	later := time.AfterFunc(settle, func() {
		defer close(done)
		e.heard("", e.process)
	})
	return func() {
		if !later.Stop() {
			<-done
		}
	}
}
