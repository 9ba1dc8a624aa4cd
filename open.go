package rowlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

// DB is what Open needs of a pool: *sql.DB and *sqlx.DB have it. It stays the caller's to close, after the client.
type DB interface {
	Conn(ctx context.Context) (*sql.Conn, error)
	Stats() sql.DBStats
}

const openTimeout = 15 * time.Second

// Open returns a client on the tables in db. It takes Config.Lanes connections of the pool for itself, checks that the server
// and the tables can be trusted with locks, and runs every kind of statement once. It creates nothing: the tables are
// schema.Migrate's, or your own migration tool's.
func Open(db DB, d dialect.Dialect, cfg *Config) (*Client, error) {
	if db == nil || d == nil {
		return nil, fmt.Errorf("%w: Open needs a database and a dialect", lease.ErrConfig)
	}
	if cfg == nil {
		cfg = new(Config)
	}
	full, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	limit := db.Stats().MaxOpenConnections
	lanes, err := lane.Count(full.Lanes, d.Lanes(), limit, 2) // two, so that renewals do not stand behind everything else
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	store, facts, err := table.Open(ctx, db, d, table.Options{
		Lanes: lanes, Strategy: full.Strategy, Timeout: min(5*time.Second, max(full.TTL/3, 500*time.Millisecond)),
		Hints: limit == 0 || limit > lanes+1, // the application needs one
	})
	if err != nil {
		return nil, err
	}
	for _, w := range facts.Warnings {
		full.Logger.LogAttrs(ctx, slog.LevelWarn, "rowlock: "+w, slog.String("server", facts.Server))
	}
	c, err := start(store, store, full)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return c, nil
}
