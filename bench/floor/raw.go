package main

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/lease"
)

// raw is a connection of the floor, with the two statements prepared.
type raw interface {
	// take gives a free row to owner and returns its token.
	take(key []byte, owner lease.Owner) (token int64, err error)
	// clear makes the row free.
	clear(key []byte, owner lease.Owner) error
}

const ttl = 30_000_000 // µs

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

// dial returns a raw connection, and what closes it.
func dial(ctx context.Context, d *rig.Database) (r raw, conn *rig.Conn, err error) {
	if conn, err = rig.Dial(ctx, d); err != nil {
		return nil, nil, err
	}
	text := statements[d.Driver]
	take, clear := fmt.Sprintf(text.take, d.Table()), fmt.Sprintf(text.clear, d.Table())
	err = conn.Raw(func(c any) error {
		var err error
		r, err = prepare(ctx, c, take, clear)
		return err
	})
	return r, conn, err
}

func prepare(ctx context.Context, c any, take, clear string) (raw, error) {
	clearing, err := rig.Prepare(ctx, c, "clear", clear)
	if err != nil {
		return nil, err
	}
	clearer := clearer{clearing}
	if pg, ok := c.(*stdlib.Conn); ok {
		_, err := pg.Conn().Prepare(ctx, "take", take)
		return &rawPostgres{clearer, pg.Conn()}, err
	}
	taking, err := c.(driver.ConnPrepareContext).PrepareContext(ctx, take)
	if err != nil {
		return nil, err
	}
	if returning(take) {
		return &rawSQLite{clearer, taking.(driver.StmtQueryContext)}, nil
	}
	return &rawMySQL{clearer, taking.(driver.StmtExecContext)}, nil
}

// clearer is what the drivers have in common.
type clearer struct{ stmt rig.Stmt }

func (c clearer) clear(key []byte, owner lease.Owner) error { return c.stmt.Exec(key, owner[:]) }
