package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// counter asks the server how many statements it has run. Its connection is nil where there is no server.
type counter struct {
	conn *sql.Conn
	read string
}

// pg_stat_database counts commits a second late; pg_stat_statements, which must have been preloaded, counts at once.
var reads = map[string]string{
	"pgx":   `SELECT 'calls', coalesce(sum(calls), 0)::bigint FROM pg_stat_statements`,
	"mysql": `SHOW GLOBAL STATUS LIKE 'Questions'`,
}

func newCounter(ctx context.Context, d *rig.Database) (c *counter, err error) {
	c = &counter{read: reads[d.Driver]}
	if c.read == "" {
		return c, nil
	}
	if c.conn, err = d.Pool.Conn(ctx); err != nil {
		return nil, err
	}
	if d.Driver == "pgx" {
		_, err = c.conn.ExecContext(ctx, `CREATE EXTENSION IF NOT EXISTS pg_stat_statements`)
	}
	return c, err
}

func (c *counter) count(ctx context.Context) (n int64, err error) {
	if c.conn == nil {
		return 0, nil
	}
	var name string
	if err := c.conn.QueryRowContext(ctx, c.read).Scan(&name, &n); err != nil {
		return 0, fmt.Errorf("counting statements: %w", err)
	}
	return n, nil
}

func (c *counter) close() error {
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}
