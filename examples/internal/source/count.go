package source

import (
	"context"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/faultdb"
)

// OpenCounted is Open with a driver that adds to sent each statement that it is told to run, and
// each begin and end of a transaction. What the server was asked stands on no other way to it: a
// count of calls would not see what a client merges into one.
func OpenCounted(ctx context.Context, source string, sent *atomic.Int64, opts ...dialect.Option) (*DB, error) {
	return open(ctx, &DB{Source: source, sent: sent}, opts)
}

func (db *DB) pool(driver, dsn string) (*sqlx.DB, error) {
	if db.sent == nil {
		return sqlx.Open(driver, dsn)
	}
	pool, err := faultdb.Open(driver, dsn, faultdb.Func(func(op faultdb.Op) faultdb.Fault {
		if op.Kind != faultdb.Connect && op.Kind != faultdb.Prepare && op.Kind != faultdb.Ping {
			db.sent.Add(1)
		}
		return faultdb.None
	}))
	if err != nil {
		return nil, err
	}
	return sqlx.NewDb(pool, driver), nil
}
