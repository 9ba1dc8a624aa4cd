package main

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

const updatedKey = "bench/updated"

var updates = map[string]string{
	"sqlite": `UPDATE %s SET token = token + 1 WHERE key = ?`,
	"pgx":    `UPDATE %s SET token = token + 1 WHERE key = $1`,
	"mysql":  "UPDATE %s SET token = token + 1 WHERE `key` = ?",
}

// update is the least that a hand-over can be: one row is changed, and committed as a pinned
// connection commits.
type update struct {
	conn *rig.Conn
	stmt rig.Stmt
	key  []byte
}

// newUpdate needs a row of updatedKey.
func newUpdate(ctx context.Context, d *rig.Database) (*update, error) {
	conn, err := rig.Dial(ctx, d)
	if err != nil {
		return nil, err
	}
	u := &update{conn: conn, key: []byte(updatedKey)}
	err = conn.Raw(func(c any) (err error) {
		u.stmt, err = rig.Prepare(ctx, c, "update", fmt.Sprintf(updates[d.Driver], d.Table()))
		return err
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return u, nil
}

func (u *update) once() error  { return u.stmt.Exec(u.key) }
func (u *update) close() error { u.conn.Close(); return nil }
