package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	dialTimeout = 3 * time.Second
	// A connection that has been silent for beat is asked whether it is alive. A firewall that
	// forgot it, or an unplugged cable, reports nothing, and is noticed after beat+pong at the
	// latest.
	beat = 4 * time.Second
	pong = 3 * time.Second
)

func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}

// hangUpBelow ends pgx's connection beneath database/sql's. A pgxpool beneath database/sql
// (stdlib.OpenDBFromPool) would take the connection back and give it to the application, with our
// settings or our LISTEN.
func hangUpBelow(c any) {
	if conn := pgxOf(c); conn != nil {
		hangUp(conn)
	}
}

// ask sends a statement that a live server answers at once.
func ask(ctx context.Context, conn *pgx.Conn, query string) error {
	ctx, cancel := context.WithTimeout(ctx, pong)
	defer cancel()
	_, err := conn.PgConn().Exec(ctx, query).ReadAll()
	return err
}

// pgxOf finds pgx's connection beneath database/sql's and any wrapper of the pool's driver; nil if
// there is none.
func pgxOf(c any) *pgx.Conn {
	switch c := c.(type) {
	case interface{ Unwrap() any }:
		return pgxOf(c.Unwrap())
	case interface{ Conn() *pgx.Conn }:
		return c.Conn()
	}
	return nil
}

// errOver: a COMMIT or ROLLBACK was sent as a statement.
var errOver = fmt.Errorf("%w: a statement of its own has ended it", sql.ErrTxDone)

func over(driverConn any) error {
	if c := pgxOf(driverConn); c == nil || c.PgConn().TxStatus() != idle {
		return nil
	}
	return errOver
}

// abandon ends a transaction that the application left open on a connection that it returned to its
// pool. pgx discards such a connection; lib/pq lends it.
func abandon(ctx context.Context, conn *sql.Conn) error {
	discards := false
	err := withPgx(conn, func(*pgx.Conn) error { discards = true; return nil })
	if err == nil && !discards {
		_, err = conn.ExecContext(ctx, `ROLLBACK`)
	}
	return err
}

// withPgx runs f on the connection beneath conn, if it is pgx's.
func withPgx(conn *sql.Conn, f func(*pgx.Conn) error) (err error) {
	raw := conn.Raw(func(c any) error {
		if c := pgxOf(c); c != nil {
			err = f(c)
		}
		return nil
	})
	if raw != nil {
		return raw
	}
	return err
}
