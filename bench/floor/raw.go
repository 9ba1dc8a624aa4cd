package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// raw is a connection of the floor: the driver's own, with the session settings of a lane and the two statements prepared.
// It takes no context: drivers watch one that can end from another goroutine, for which the floor does not pay.
type raw interface {
	// take gives a free row to owner and returns its token.
	take(key []byte, owner lease.Owner) (token int64, err error)
	// clear makes the row free.
	clear(key []byte, owner lease.Owner) error
}

var unwatched = context.Background()

const ttl = 30_000_000 // µs

var errNotTaken = errors.New("the row was not free")

// The hand-written statements. Each is what no lease lock can do without: who, until when, and a token that grows, if it is
// free; and nobody any more, if it is still ours.
var statements = map[string]struct{ take, clear string }{
	"sqlite": {
		`UPDATE %s SET owner = ?, token = token + 1, expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ? / 1000
			WHERE key = ? AND (owner IS NULL OR expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)) RETURNING token`,
		`UPDATE %s SET owner = NULL WHERE key = ? AND owner = ?`,
	},
	"pgx": {
		`UPDATE %s SET owner = $1, token = token + 1, expires_at = clock_timestamp() + $2::bigint * interval '1 microsecond'
			WHERE key = $3 AND (owner IS NULL OR expires_at <= clock_timestamp()) RETURNING token`,
		`UPDATE %s SET owner = NULL WHERE key = $1 AND owner = $2`,
	},
	"mysql": {
		`UPDATE %s SET owner = ?, token = LAST_INSERT_ID(token + 1), expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
			WHERE ` + "`key`" + ` = ? AND (owner IS NULL OR expires_at <= UTC_TIMESTAMP(6))`,
		`UPDATE %s SET owner = NULL WHERE ` + "`key`" + ` = ? AND owner = ?`,
	},
}

// dial returns a raw connection. It stays pinned in conn, which nobody uses any more but to close it.
func dial(ctx context.Context, d *database) (r raw, conn *sql.Conn, err error) {
	if conn, err = d.pool.Conn(ctx); err != nil {
		return nil, nil, err
	}
	if err := d.dialect.Setup(ctx, dialect.NewSession(conn)); err != nil {
		return nil, conn, err
	}
	text := statements[d.driver]
	take, clear := fmt.Sprintf(text.take, d.table()), fmt.Sprintf(text.clear, d.table())
	err = conn.Raw(func(c any) error {
		var err error
		r, err = prepare(ctx, c, take, clear)
		return err
	})
	return r, conn, err
}

func prepare(ctx context.Context, c any, take, clear string) (raw, error) {
	if pg, ok := c.(*stdlib.Conn); ok {
		return preparePostgres(ctx, pg.Conn(), take, clear)
	}
	p := c.(driver.ConnPrepareContext)
	taking, err := p.PrepareContext(ctx, take)
	if err != nil {
		return nil, err
	}
	clearing, err := p.PrepareContext(ctx, clear)
	if err != nil {
		return nil, err
	}
	clearer := clearer{clearing.(driver.StmtExecContext)}
	if returning(take) {
		return &rawSQLite{clearer, taking.(driver.StmtQueryContext)}, nil
	}
	return &rawMySQL{clearer, taking.(driver.StmtExecContext)}, nil
}
