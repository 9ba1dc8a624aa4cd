package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/internal/faultdb"
)

// counter is who counts statements. A database without a server has nobody who does: there it is the driver.
type counter struct {
	by   string
	conn *sql.Conn // nil: the driver counts
	sent *sent
	read string // the statement that asks the server
	made bool   // the extension that counts was created for this
}

// sent is what the driver was told to run, seen on the way.
type sent struct {
	statements atomic.Int64
	version    string // a look at SQLite's counter of commits
	looks      atomic.Int64
}

func (s *sent) Inject(op faultdb.Op) faultdb.Fault {
	if op.Kind != faultdb.Connect && op.Kind != faultdb.Prepare && op.Kind != faultdb.Ping {
		s.statements.Add(1)
	}
	if s.version != "" && op.Executes() && op.Query == s.version {
		s.looks.Add(1)
	}
	return faultdb.None
}

const (
	postgresCalls = `SELECT sum(calls)::bigint FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())`
	postgresCommits = `SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()`
	mysqlQuestions  = `SHOW GLOBAL STATUS LIKE 'Questions'`
)

func newCounter(ctx context.Context, d *rig.Database) (c *counter, err error) {
	c = &counter{by: "driver", sent: &sent{}}
	switch d.Driver {
	case "sqlite":
		c.sent.version = d.Dialect.Text("version")
		return c, nil
	case "mysql":
		c.by, c.read = "Questions", mysqlQuestions
	}
	if c.conn, err = d.Pool.Conn(ctx); err != nil {
		return nil, err
	}
	if d.Driver == "pgx" {
		err = c.choosePostgres(ctx)
	}
	return c, err
}

// choosePostgres prefers pg_stat_statements, which counts at once and leaves out only empty statements (the listener sends one
// when nothing was heard for 4 s). It must have been preloaded. The counter of commits is a second behind, and more.
func (c *counter) choosePostgres(ctx context.Context) error {
	var there bool
	err := c.conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'pg_stat_statements')`).Scan(&there)
	if err != nil {
		return err
	}
	if !there {
		_, err = c.conn.ExecContext(ctx, `CREATE EXTENSION pg_stat_statements`)
		c.made = err == nil
	}
	if err == nil {
		c.by, c.read = "pg_stat_statements", postgresCalls
		if _, err = c.count(ctx); err == nil {
			return nil
		}
	}
	c.by, c.read = "xact_commit", postgresCommits
	_, err = c.count(ctx)
	return err
}

// count asks the server, which counts that too: there is one such statement between two counts.
func (c *counter) count(ctx context.Context) (n int64, err error) {
	switch {
	case c.conn == nil:
		return c.sent.statements.Load(), nil
	case c.read == mysqlQuestions:
		var name string
		err = c.conn.QueryRowContext(ctx, c.read).Scan(&name, &n)
	default:
		err = c.conn.QueryRowContext(ctx, c.read).Scan(&n)
	}
	if err != nil {
		err = fmt.Errorf("counting with %s: %w", c.by, err)
	}
	return n, err
}

// between is how many statements there were from one count to the next.
func (c *counter) between(before, after int64) float64 {
	if c.conn != nil {
		after--
	}
	return float64(after - before)
}

func (c *counter) close() (err error) {
	if c.conn == nil {
		return nil
	}
	if c.made {
		_, err = c.conn.ExecContext(context.Background(), `DROP EXTENSION pg_stat_statements`)
	}
	return errors.Join(err, c.conn.Close())
}
