package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Pooled is for a pool that leads through PgBouncer, or its like, in transaction mode, where each
// statement may reach another session of the server. rowlock then changes no session state, so that
// pooled sessions stay clean: no settings and no prepared statements. Nor does it trust what other
// clients have set in them: each of its statements comes with its settings, in a transaction of one
// round trip. The pool's DSN needs default_query_exec_mode=exec. To listen, add a Listen with a DSN
// that goes to the server directly.
func Pooled() dialect.Option { return func(s *adapter.Place) { s.Pooled = true } }

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

// checkPgpool refuses Pgpool-II, which alone knows pool_version, and only by the simple protocol.
// If the server sees the port that this connection has, nothing is between. Else the question costs
// an error, which a transaction survives by a savepoint: another connection may be one too many for
// a pooler.
func checkPgpool(ctx context.Context, c *pgx.Conn) error {
	port, err := answer(ctx, c.PgConn(), `SELECT inet_client_port()`)
	if err != nil || strings.HasSuffix(fmt.Sprint(c.PgConn().Conn().LocalAddr()), ":"+port) {
		return err
	}
	within := c.PgConn().TxStatus() == 'T'
	if within {
		err = ask(ctx, c, `SAVEPOINT pgpool`)
	}
	version, unknown := answer(ctx, c.PgConn(), `SHOW pool_version`)
	if unknown == nil {
		return fmt.Errorf("%w: this pool leads through Pgpool-II %s, which may have a standby or a cache "+
			"answer what rowlock reads, and write to several servers: give Open a pool that goes to the "+
			"primary directly, or through PgBouncer", lease.ErrTopology, version)
	}
	if within {
		err = cmp.Or(err, ask(ctx, c, `ROLLBACK TO pgpool`))
	}
	return err
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

// sessionOf asks for the id of the server's process.
func sessionOf(ctx context.Context, c *pgconn.PgConn) (string, error) {
	return answer(ctx, c, `SELECT pg_backend_pid()`)
}

// answer is the one value of a query, by the simple protocol, which prepares nothing.
func answer(ctx context.Context, c *pgconn.PgConn, query string) (string, error) {
	res, err := c.Exec(ctx, query).ReadAll()
	if err != nil {
		return "", err
	}
	return string(res[0].Rows[0][0]), nil
}
