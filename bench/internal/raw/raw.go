// Package raw is the floor: the two statements that any lease lock must run, prepared on the raw
// driver.
package raw

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/lease"
)

// Statements are those of one connection.
type Statements interface {
	// Take gives a free row to owner and returns its token. An error wraps rig.ErrNotOne if there is
	// no such row, or it is not free.
	Take(key []byte, owner lease.Owner) (token int64, err error)
	// Clear makes the row free. An error wraps rig.ErrNotOne if it was not owner's.
	Clear(key []byte, owner lease.Owner) error
}

const ttl = 30_000_000 // µs

// The hand-written statements. Each is what no lease lock can do without: who, until when, and a
// token that grows, if it is free; and no owner, if it is still ours.
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

// Dial returns a connection's statements, and what closes it.
func Dial(ctx context.Context, d *rig.Database) (s Statements, conn *rig.Conn, err error) {
	if conn, err = rig.Dial(ctx, d); err != nil {
		return nil, nil, err
	}
	err = conn.Raw(func(c any) error {
		var err error
		s, err = Prepare(ctx, d, c)
		return err
	})
	return s, conn, err
}

// Prepare prepares the statements on c, which must be what rig.Conn.Raw gives.
func Prepare(ctx context.Context, d *rig.Database, c any) (Statements, error) {
	text := statements[d.Driver]
	take, clear := fmt.Sprintf(text.take, d.Table()), fmt.Sprintf(text.clear, d.Table())
	clearing, err := rig.Prepare(ctx, c, "clear", clear)
	if err != nil {
		return nil, err
	}
	clearer := clearer{clearing}
	if pg, ok := c.(*stdlib.Conn); ok {
		_, err := pg.Conn().Prepare(ctx, "take", take)
		return &postgresql{clearer, pg.Conn()}, err
	}
	taking, err := c.(driver.ConnPrepareContext).PrepareContext(ctx, take)
	if err != nil {
		return nil, err
	}
	if returning(take) {
		return &sqlite{clearer, taking.(driver.StmtQueryContext)}, nil
	}
	return &mysql{clearer, taking.(driver.StmtExecContext)}, nil
}

// clearer is what the drivers have in common.
type clearer struct{ stmt rig.Stmt }

func (c clearer) Clear(key []byte, owner lease.Owner) error { return c.stmt.Exec(key, owner[:]) }
