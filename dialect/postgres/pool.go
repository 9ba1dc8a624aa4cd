package postgres

import (
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/rowlockdb/rowlock/lease"
)

// OpenPool returns pool as a *sql.DB, for rowlock.Open, once.New and forupdate. Both share pool's
// connections, and the *sql.DB knows pool's MaxConns: rowlock.Open then leaves the application at
// least one, or refuses with lease.ErrPool.
//
// A client keeps 3 connections of pool (Config.Connections). While it waits for a lock it has one
// more to listen on, if pool is larger than 4. pgxpool's default is 4, or the number of CPUs if
// that is more: set pool_max_conns to what the application needs and 4 more, and 5 with
// Config.Trace.
//
// Close in this order: the client, the *sql.DB, pool. pool.Close waits until its connections are
// back, and a client that is open keeps its own.
//
// OpenPool connects to nothing. It returns an error that wraps lease.ErrConfig if pool is nil.
func OpenPool(pool *pgxpool.Pool) (*sql.DB, error) {
	if pool == nil {
		return nil, fmt.Errorf("%w: postgres.OpenPool: the pool is nil; make one (pgxpool.New)",
			lease.ErrConfig)
	}
	db := stdlib.OpenDBFromPool(pool)
	db.SetMaxOpenConns(int(pool.Config().MaxConns))
	return db, nil
}
