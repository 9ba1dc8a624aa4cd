package conn

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Session is one pinned connection with its settings made and its statements prepared. One
// goroutine uses it at a time.
//
// Lock statements never go through (*sql.DB).Exec or Query. When a reply is lost, database/sql and
// some drivers run such a statement again without an error, up to three times (golang/go#11978,
// lib/pq#939, and measured with pgx's stdlib since 5.9). On a pinned connection they do not.
type Session struct {
	Server
	Releases
	Driver
	// Guard is how a transaction begins, and what protects it from a client that vanishes.
	Guard Guard
	// Sent counts the statements that were sent, without those of InTx itself. May be nil.
	Sent *atomic.Int64

	conn  *sql.Conn
	open  bool // InTx has begun a transaction
	stmts map[string]*statement
	job   job
	bound bound
	eraOf
}

// Server is what Setup has found out of a session of the server.
type Server struct {
	// Flavor is for the dialect's own use: Setup distinguishes MariaDB from MySQL here.
	Flavor string
	// Local says that no statement can hang on a network, because the database is a file.
	Local bool
	// ID is what the server calls the session: 0 if that is not known, as behind a pooler.
	ID int64
}

// Releases is what the releases of a session depend on.
type Releases struct {
	// Process is the process that uses the session, if known: a release does not report that
	// process's own waiters as Awaited.
	Process lease.Owner
	// Channel is what the processes of these tables listen on.
	Channel string
	// Heard is for the dialect's own use: whether a process listened at the last release.
	Heard bool
	// Relaxed says that the commit of a transaction which does nothing but release need not wait for
	// the disk, or for a standby. Setup takes it back where that is no cheaper, or not sound.
	Relaxed bool
}

// Driver is how a session uses its driver. Setup fills it in.
type Driver struct {
	// Relays says that the driver asks the server to cancel a statement whose context has ended, and
	// then reads the answer. PostgreSQL answers with success if it has cancelled a wait for a
	// synchronous standby.
	Relays bool
	// Unprepared has every statement sent without preparing it, because the next may reach another
	// session of the server.
	Unprepared bool
	// HangUp ends the driver's connection, where a pool below database/sql's may keep a connection
	// that database/sql has closed, with our settings. May be nil.
	HangUp func(driverConn any)
	// Wire runs the prepared statements below database/sql. May be nil.
	Wire Wire
	// Limit limits everything on the connection to an end, or to none if it is zero. Contexts then
	// need not be watched; see Bind. May be nil.
	Limit func(end time.Time)
	// Severed reports whether err is what the driver says of a connection whose deadline has passed,
	// if that is not a net.Error. Any other end of a connection may look the same. May be nil.
	Severed func(err error) bool
}

// Guard is how a transaction begins, and what bounds the silence within it, if the session's
// settings cannot.
type Guard struct {
	// Begin begins a transaction of InTx, and says its isolation; "": BEGIN.
	Begin string
	// Before and After run around the transaction: for a server that can limit only silence of
	// any kind.
	Before, After string
	// Within runs at its beginning: for a session that other clients share, whose settings may be
	// anything. Such a session runs every statement in a transaction, because a statement alone
	// would run with what another client has set.
	Within string
}

// NewSession takes over conn.
func NewSession(conn *sql.Conn) *Session {
	s := &Session{conn: conn, stmts: make(map[string]*statement)}
	s.job.first, s.job.plain, s.job.wired = s.job.scanFirst, s.runPlain, s.runWired
	s.bound.expire = s.expire
	return s
}

// Conn returns the pinned connection, for probes and settings.
func (s *Session) Conn() *sql.Conn { return s.conn }

// InTx runs f between BEGIN and COMMIT. The statements that f runs on the session are inside the
// transaction, because there is only one connection. An error of f rolls back. An error of the
// commit leaves the outcome unknown.
//
// It does not use sql.Tx, which holds the sql.Conn's lock until it ends: a prepared statement that
// finds the connection bad waits for that lock, for ever.
func (s *Session) InTx(ctx context.Context, f func() error) error {
	if s.Guard.Before != "" {
		if _, err := s.conn.ExecContext(ctx, s.Guard.Before); err != nil {
			return NotSent{err}
		}
		// If this fails, the connection has failed, or will after it has been idle for a
		// while: the connection's next statement notices.
		defer func() { _, _ = s.conn.ExecContext(ctx, s.Guard.After) }()
	}
	return s.inTx(ctx, func() error {
		if s.Guard.Within != "" {
			if _, err := s.conn.ExecContext(ctx, s.Guard.Within); err != nil {
				return err
			}
		}
		return f()
	})
}

func (s *Session) inTx(ctx context.Context, f func() error) error {
	if _, err := s.conn.ExecContext(ctx, cmp.Or(s.Guard.Begin, `BEGIN`)); err != nil {
		return NotSent{err}
	}
	s.open = true
	defer func() { s.open = false }()
	err := f()
	committing := err == nil
	if committing {
		if _, err = s.conn.ExecContext(ctx, `COMMIT`); err == nil {
			return s.acknowledged(ctx)
		}
	}
	// Also after a refused COMMIT, because SQLite leaves the transaction open when it is busy.
	if _, failed := s.conn.ExecContext(ctx, `ROLLBACK`); failed != nil {
		return Unsettled{err, committing}
	}
	return err
}

// InTransaction reports whether InTx has begun a transaction that is not over.
func (s *Session) InTransaction() bool { return s.open }

// acknowledged is the error of a statement that has succeeded. It is nil, unless the success may be
// that of a cancelled wait.
func (s *Session) acknowledged(ctx context.Context) error {
	if s.Relays && ctx.Err() != nil {
		return Unsettled{Err: ctx.Err(), Committing: true}
	}
	return nil
}

// Discard drops the connection for good. It never returns to the pool, because no other user should
// inherit our session settings, such as the lock timeout.
func (s *Session) Discard() {
	_ = s.conn.Raw(func(c any) error {
		if s.HangUp != nil {
			s.HangUp(c)
		}
		for _, st := range s.stmts {
			// A server forgets them with the connection, and closing each would cost a round trip.
			if s.Local {
				_ = st.Close()
			}
		}
		return driver.ErrBadConn
	})
	_ = s.conn.Close()
}
