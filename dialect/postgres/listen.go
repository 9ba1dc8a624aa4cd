package postgres

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Listen gives clients a connection of their own to hear of released keys on, instead of one of the
// pool. A pool that leads through PgBouncer in transaction mode needs it, because a LISTEN there is
// made on a server connection that another client uses a moment later. The DSN leads to the same
// database directly.
func Listen(dsn string) dialect.Option { return func(s *adapter.Place) { s.Listen = dsn } }

// Listen hears what is announced on channel until ctx ends or the connection is lost.
func (d *database) Listen(
	ctx context.Context, pool adapter.Pool, channel string, process lease.Owner,
	heard func(key string, chosen lease.Owner),
) error {
	on := listener{channel, d.name(), process, heard}
	switch {
	case d.settings.Listen != "":
		return on.dial(ctx, d.settings.Listen)
	case d.settings.Pooled:
		return fmt.Errorf("%w: one cannot listen through a pooler: give postgres.New a "+
			"postgres.Listen beside postgres.Pooled", lease.ErrUnsupported)
	case pool != nil:
		return on.borrow(ctx, pool)
	}
	return fmt.Errorf("%w: no connection can be spared to listen on: raise MaxOpenConns, or give "+
		"postgres.New a postgres.Listen", lease.ErrUnsupported)
}

// listener is one connection that listens.
type listener struct {
	channel string
	name    string      // of the session, as SQL
	process lease.Owner // zero: none
	heard   func(key string, chosen lease.Owner)
}

func (e listener) dial(ctx context.Context, dsn string) error {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := pgx.Connect(dialing, dsn)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	return e.listen(ctx, conn)
}

// borrow listens on a connection of the pool and drops it afterwards, because no other user should
// inherit a LISTEN.
func (e listener) borrow(ctx context.Context, pool adapter.Pool) error {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := pool.Conn(dialing)
	if err != nil {
		return err
	}
	defer conn.Close()
	var failed error
	_ = conn.Raw(func(c any) error {
		failed = e.listenOn(ctx, c)
		hangUpBelow(c)
		return driver.ErrBadConn
	})
	return failed
}

func (e listener) listenOn(ctx context.Context, c any) error {
	conn := pgxOf(c)
	if conn == nil {
		return fmt.Errorf("%w: the pool's driver is %T, and only pgx can listen: use it, or give "+
			"postgres.New a postgres.Listen", lease.ErrUnsupported, c)
	}
	return e.listen(ctx, conn)
}

func (e listener) listen(ctx context.Context, conn *pgx.Conn) error {
	listen := `LISTEN ` + pgx.Identifier{e.channel}.Sanitize()
	// A channel of its own, because every message for one process would otherwise wake all of them.
	if !e.process.IsZero() {
		listen += `; LISTEN ` + pgx.Identifier{ownChannel(e.channel, e.process)}.Sanitize()
	}
	if err := ask(ctx, conn, listen+`; SELECT `+e.name); err != nil {
		return err
	}
	e.heard("", lease.Owner{})
	for {
		if err := e.next(ctx, conn); err != nil {
			return err
		}
	}
}

// next waits for one message. If none comes for a while, it asks whether the server is still there.
func (e listener) next(ctx context.Context, conn *pgx.Conn) error {
	waiting, cancel := context.WithTimeout(ctx, beat)
	defer cancel()
	n, err := conn.WaitForNotification(waiting)
	switch {
	case n != nil:
		if n.Channel == e.channel {
			e.heard(keyOf(n.Payload), lease.Owner{})
		} else {
			e.heard(keyOf(n.Payload), e.process)
		}
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case waiting.Err() != nil && !conn.IsClosed():
		return ask(ctx, conn, `-- rowlock listens`)
	}
	return err
}
