package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Pooled is for a pool that leads through PgBouncer, or its like, in transaction mode, where each
// statement may reach another session of the server. rowlock then changes no session state, so that
// pooled sessions stay clean: no settings and no prepared statements. Nor does it trust what other
// clients have set in them: each of its statements comes with its settings, in a transaction of one
// round trip. The pool's DSN needs default_query_exec_mode=exec. To listen, add a Listen with a DSN
// that goes to the server directly.
func Pooled() dialect.Option { return func(s *sqlstore.Settings) { s.Pooled = true } }

const pooledCure = "give Open a pool that goes to the server directly, or through the pooler in " +
	"session mode; or use postgres.New(postgres.Pooled()) " +
	"with default_query_exec_mode=exec in the pool's DSN"

// errPrepared is the meaning of a prepared statement that is gone, or whose name is taken.
var errPrepared = fmt.Errorf("%w: a prepared statement is not this session's own, as behind a "+
	"pooler in transaction mode: %s", lease.ErrConfig, pooledCure)

// checkMode refuses a driver that prepares statements on its own. The other modes send a statement
// and its parameters at once.
func checkMode(c *pgx.Conn) error {
	switch mode := c.Config().DefaultQueryExecMode; mode {
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec:
		return fmt.Errorf("%w: postgres.Pooled: the driver prepares statements in one round trip "+
			"and runs them in the next (mode %q), when the session may be another; add "+
			"default_query_exec_mode=exec to the DSN", lease.ErrConfig, mode)
	}
	return nil
}

// checkOwn refuses a connection that shares its session of the server with others, if that can be
// seen, before it makes any setting that they would get. A pooler tells each client a process id
// that is not the server's. Whether it also keeps a session for each client shows when two
// connections send in turn: sooner or later they meet in one session, or one of them changes its
// session.
func checkOwn(ctx context.Context, c *pgx.Conn) error {
	first, err := sessionOf(ctx, c.PgConn())
	if err != nil || first == strconv.FormatUint(uint64(c.PgConn().PID()), 10) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	other, err := pgx.ConnectConfig(ctx, c.Config())
	if err != nil {
		return nil // a pooler without a free session may well keep one for each client
	}
	defer hangUp(other)
	for range 5 {
		theirs, err := sessionOf(ctx, other.PgConn())
		if err != nil {
			return nil
		}
		ours, err := sessionOf(ctx, c.PgConn())
		if err != nil {
			return err
		}
		if ours == theirs || ours != first {
			return fmt.Errorf("%w: this pool leads through a pooler in transaction mode, where "+
				"the settings and prepared statements of pinned connections would get into the "+
				"sessions of others: %s", lease.ErrConfig, pooledCure)
		}
	}
	return nil
}

// sessionOf asks for the id of the server's process, by the simple protocol, which prepares
// nothing.
func sessionOf(ctx context.Context, c *pgconn.PgConn) (string, error) {
	res, err := c.Exec(ctx, `SELECT pg_backend_pid()`).ReadAll()
	if err != nil {
		return "", err
	}
	return string(res[0].Rows[0][0]), nil
}

// setupPooled changes nothing in the session, which the next statement may not meet again. Every
// transaction makes its own settings; see pins.
func (d *database) setupPooled(s *conn.Session) error {
	s.Unprepared = true
	s.Guard.Begin, s.Guard.Within = beginShared, pinsFirst+`; `+pins
	return wired(s)
}
