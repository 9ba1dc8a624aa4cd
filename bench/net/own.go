package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// own is a connection that locks as the server itself does, in its memory: the lock ends with the
// connection, and there is no token.
type own struct {
	conn         *sql.Conn
	lock, unlock string // of the key that %d is
}

var owns = map[string][2]string{
	"pgx":   {"pg_advisory_lock(8765, %d)", "pg_advisory_unlock(8765, %d)"},
	"mysql": {"GET_LOCK('bench/net/%d', 60)", "RELEASE_LOCK('bench/net/%d')"},
}

func newOwn(ctx context.Context, d *rig.Database) (*own, error) {
	conn, err := d.Pool.Conn(ctx)
	return &own{conn, owns[d.Driver][0], owns[d.Driver][1]}, err
}

func (o *own) close() error { return o.conn.Close() }

func (o *own) ping(ctx context.Context) error { return o.say(ctx, "1", 1) }

// say selects the call for each of the keys from 1 to n.
func (o *own) say(ctx context.Context, call string, n int) error {
	var calls []string
	var answers []any
	for key := range n {
		calls = append(calls, strings.ReplaceAll(call, "%d", fmt.Sprint(key+1)))
		answers = append(answers, new(any))
	}
	return o.conn.QueryRowContext(ctx, "SELECT "+strings.Join(calls, ", ")).Scan(answers...)
}

func (o *own) lockAndUnlock(ctx context.Context) error { return o.both(ctx, 1) }

func (o *own) five(ctx context.Context) error { return o.both(ctx, 5) }

func (o *own) both(ctx context.Context, n int) error {
	if err := o.say(ctx, o.lock, n); err != nil {
		return err
	}
	return o.say(ctx, o.unlock, n)
}

// around is a section: a transaction within the lock.
func (o *own) around(statement string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := o.say(ctx, o.lock, 1); err != nil {
			return err
		}
		if err := write(ctx, o.conn, statement); err != nil {
			return err
		}
		return o.say(ctx, o.unlock, 1)
	}
}

func write(ctx context.Context, db beginner, statement string) error {
	return inTx(ctx, db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement)
		return err
	})
}
