package rig

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Statements counts those that a server has run, for whichever client it was.
type Statements struct {
	By string // what counts

	conn *sql.Conn
	read string // the statement that asks the server
	made bool   // the extension that counts was created for this
}

const (
	postgresCalls = `SELECT sum(calls)::bigint FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())`
	postgresCommits = `SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()`
	mysqlQuestions  = `SHOW GLOBAL STATUS LIKE 'Questions'`
)

// NewStatements begins to count on d's server. SQLite has none, and no counter: it is nil.
func NewStatements(ctx context.Context, d *Database) (c *Statements, err error) {
	if d.Driver == "sqlite" {
		return nil, nil
	}
	c = &Statements{By: "Questions", read: mysqlQuestions}
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
func (c *Statements) choosePostgres(ctx context.Context) error {
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
		c.By, c.read = "pg_stat_statements", postgresCalls
		if _, err = c.Count(ctx); err == nil {
			return nil
		}
	}
	c.By, c.read = "xact_commit", postgresCommits
	_, err = c.Count(ctx)
	return err
}

// Count asks the server, which counts that too: there is one such statement between two counts. A nil
// counter knows of none.
func (c *Statements) Count(ctx context.Context) (n int64, err error) {
	if c == nil {
		return 0, nil
	}
	if c.read == mysqlQuestions {
		var name string
		err = c.conn.QueryRowContext(ctx, c.read).Scan(&name, &n)
	} else {
		err = c.conn.QueryRowContext(ctx, c.read).Scan(&n)
	}
	if err != nil {
		err = fmt.Errorf("counting with %s: %w", c.By, err)
	}
	return n, err
}

// Since is how many statements there were after a count, without that which asks.
func (c *Statements) Since(ctx context.Context, before int64) (int64, error) {
	if c == nil {
		return 0, nil
	}
	after, err := c.Count(ctx)
	return after - before - 1, err
}

// Close leaves the server as it was.
func (c *Statements) Close() (err error) {
	if c == nil {
		return nil
	}
	if c.made {
		_, err = c.conn.ExecContext(context.Background(), `DROP EXTENSION pg_stat_statements`)
	}
	return errors.Join(err, c.conn.Close())
}
