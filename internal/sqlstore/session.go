package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/rowlockdb/rowlock/lease"
)

// Session is one pinned connection with its settings made and its statements prepared. One goroutine uses it at a time.
//
// Lock statements never go through (*sql.DB).Exec or Query: when a reply is lost, database/sql and some drivers run such a
// statement again in silence, up to three times (golang/go#11978, lib/pq#939, and pgx's stdlib since 5.9 was measured to).
// On a pinned connection they do not.
type Session struct {
	// Flavor is for the dialect's own use: Setup may tell MariaDB from MySQL here.
	Flavor string
	// Local says that no statement can hang on a network: Setup may find that the database is a file.
	Local bool
	// Process is whose session this is, if known: what it waits for itself need not be reported to it as Awaited.
	Process lease.Owner

	// Relays says that the driver asks the server to cancel a statement whose context has ended, and goes on to read the answer: Setup may
	// find that. PostgreSQL answers with success when it is a wait for a synchronous standby that it has cancelled.
	Relays bool
	// Unprepared has every statement sent as it is: Setup may find that the next may come to another session of the server.
	Unprepared bool
	// Guard is what a transaction needs to be safe from a client that vanishes; Setup fills it in.
	Guard Guard

	conn  *sql.Conn
	stmts map[string]*statement
	lists map[string]*sql.Stmt // of Rows
	job   job
}

// Guard bounds the silence within a transaction, where that cannot be the session's setting.
type Guard struct {
	// Before and After are run around the transaction: for a server that has only a limit on any silence.
	Before, After string
	// Within is run at its beginning: for a session that is not our own.
	Within string
}

// NewSession takes over conn.
func NewSession(conn *sql.Conn) *Session {
	s := &Session{conn: conn, stmts: make(map[string]*statement), lists: make(map[string]*sql.Stmt)}
	s.job.do = s.job.on(s)
	return s
}

// Conn is the pinned connection, for probes and settings.
func (s *Session) Conn() *sql.Conn { return s.conn }

// Rows runs a prepared statement whose rows are read with package sqlx, say. The caller closes them. Query costs less.
func (s *Session) Rows(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	if s.Unprepared {
		return s.conn.QueryContext(ctx, query, args...)
	}
	st, ok := s.lists[query]
	if !ok {
		var err error
		if st, err = s.conn.PrepareContext(ctx, query); err != nil {
			return nil, NotSent{err}
		}
		s.lists[query] = st
	}
	return st.QueryContext(ctx, args...)
}

// InTx runs f between BEGIN and COMMIT. The statements f runs on the session are inside the transaction, because there is
// only one connection. An error of f rolls back; an error of the commit leaves the outcome unknown.
//
// It is no sql.Tx: that holds the sql.Conn's lock until it ends, and a prepared statement that finds the connection bad waits
// for that very lock, for ever.
func (s *Session) InTx(ctx context.Context, f func() error) error {
	if s.Guard.Before != "" {
		if _, err := s.conn.ExecContext(ctx, s.Guard.Before); err != nil {
			return NotSent{err}
		}
		// Where this fails the connection has, or will when it has been idle for a while: the lane's next statement notices.
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
	if _, err := s.conn.ExecContext(ctx, `BEGIN`); err != nil {
		return NotSent{err}
	}
	err := f()
	committing := err == nil
	if committing {
		if _, err = s.conn.ExecContext(ctx, `COMMIT`); err == nil {
			return s.acknowledged(ctx)
		}
	}
	// Also after a COMMIT that was refused: SQLite leaves the transaction open when it is busy.
	if _, failed := s.conn.ExecContext(ctx, `ROLLBACK`); failed != nil {
		return Unsettled{err, committing}
	}
	return err
}

// acknowledged is the error of a statement that has succeeded: none, unless its success may be that of a cancelled wait.
func (s *Session) acknowledged(ctx context.Context) error {
	if s.Relays && ctx.Err() != nil {
		return Unsettled{Err: ctx.Err(), Committing: true}
	}
	return nil
}

// Discard drops the connection for good. It is never given back to the pool: the session's settings are ours, and nobody
// else should inherit a lock timeout from us.
func (s *Session) Discard() {
	_ = s.conn.Raw(func(any) error {
		for _, st := range s.stmts {
			if s.Local { // a server forgets them with the connection, and closing them one by one would be a round trip each
				_ = st.Close()
			}
		}
		return driver.ErrBadConn
	})
	_ = s.conn.Close()
}
