package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// wire runs prepared statements with pgconn. It reads a reply to its end before anything of it is
// told: pgconn hands out rows as they come, and a row comes before its commit.
type wire struct {
	reply
	request
	broken bool
	shared *sqlstore.Session // the session, if other clients share it; see bracket
}

// plan is a prepared statement.
type plan struct {
	description *pgconn.StatementDescription
	results     []int16
	label       string // of the statement, for what ends its transaction
}

// beneath is a wrapper around a driver's connection that lets the wire through, one operation at a
// time, each of which it may break. The operation may run after Beneath has returned an error.
type beneath interface {
	Beneath(ctx context.Context, verb, query string, run func(context.Context, any) error) error
	Unwrap() any
}

// wired has the session use pgx below database/sql, if no tracer of the pool and no wrapper around
// the driver is to see its statements.
func wired(s *sqlstore.Session) error {
	var shared *sqlstore.Session
	if s.Unprepared {
		shared = s
	}
	return s.Conn().Raw(func(c any) error {
		_, plain := c.(*stdlib.Conn)
		_, lets := c.(beneath)
		conn := pgxOf(c)
		if !plain && !lets || conn == nil || s.Relays || conn.Config().Tracer != nil {
			return nil
		}
		s.Wire = &wire{shared: shared}
		if plain {
			s.Limit = limiter(conn)
		}
		return nil
	})
}

// limiter sets the deadline of a connection. pgconn has one of its own on a connection that it is
// closing, which must not be taken away.
func limiter(conn *pgx.Conn) func(time.Time) {
	below := conn.PgConn()
	return func(end time.Time) {
		if !end.IsZero() || !below.IsClosed() {
			// It fails on a closed connection, and where pgx's own way to end a context fails too.
			_ = below.Conn().SetDeadline(end)
		}
	}
}

var errBroken = errors.New("the connection is broken")

// Prepare has the server prepare a statement. Its name is its text's: behind a pooler that nothing
// has found, the name of another session's statement would run that one. In a shared session it has
// no name, and only its types are kept; and the server must not read it by what another client has
// set there, such as a role that may not use the schema.
func (w *wire) Prepare(ctx context.Context, driverConn any, query string) (sqlstore.Plan, error) {
	var p *plan
	name := ""
	if w.shared == nil {
		name = nameOf(query)
	}
	err := w.on(ctx, driverConn, "prepare", query,
		func(ctx context.Context, c *pgconn.PgConn) error {
			return w.pinned(ctx, c, func() error {
				d, err := c.Prepare(ctx, name, query, nil)
				if err == nil {
					p = planOf(d)
				}
				return err
			})
		})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func nameOf(query string) string {
	sum := sha256.Sum256([]byte(query))
	return "rowlock_" + hex.EncodeToString(sum[:16])
}

func planOf(d *pgconn.StatementDescription) *plan {
	p := &plan{description: d, results: make([]int16, len(d.Fields)), label: labelOf(d.SQL)}
	for i, f := range d.Fields {
		if isBinary(f.DataTypeOID) {
			p.results[i] = pgx.BinaryFormatCode
		}
	}
	return p
}

// Send sends what was put, and reads the answers up to ReadyForQuery.
func (w *wire) Send(ctx context.Context, driverConn any) error {
	if w.broken {
		return errBroken
	}
	w.request.sent = true
	if c, ok := driverConn.(*stdlib.Conn); ok { // without a function: no allocation
		below := c.Conn().PgConn()
		return w.judge(w.exchange(ctx, below), below)
	}
	verb := "exec"
	if w.request.returns() {
		verb = "query"
	}
	return w.on(ctx, driverConn, verb, w.request.text(), w.exchange)
}

// on runs f on pgconn's connection.
func (w *wire) on(ctx context.Context, driverConn any, verb, query string,
	f func(context.Context, *pgconn.PgConn) error,
) error {
	if w.broken {
		return errBroken
	}
	switch c := driverConn.(type) {
	case *stdlib.Conn:
		below := c.Conn().PgConn()
		return w.judge(f(ctx, below), below)
	case beneath:
		return w.judge(c.Beneath(ctx, verb, query, func(ctx context.Context, real any) error {
			return f(ctx, real.(*stdlib.Conn).Conn().PgConn())
		}), nil)
	}
	return fmt.Errorf("%T has changed into a driver that is not pgx", driverConn)
}

// judge notes a connection on which nothing more can be sent. c is nil if a wrapper may still use
// it.
func (w *wire) judge(err error, c *pgconn.PgConn) error {
	switch {
	case err == nil:
	case c != nil:
		w.broken = w.broken || isLeft(c)
	case !errors.As(err, new(*pgconn.PgError)):
		w.broken = true
	}
	return err
}

// isLeft reports whether a connection has ended, or has an answer that was not read to its end.
func isLeft(c *pgconn.PgConn) bool { return c.IsClosed() || c.IsBusy() }

// idle is what ReadyForQuery says when no transaction is open. A transaction that was begun and
// forgotten makes an answer that looks like any other, and has no commit. Several statements never
// run within InTx.
const idle = 'I'

// exchange sends the request, and keeps the reply. The connection is idle after ReadyForQuery,
// which acknowledges the commit, and not before.
func (w *wire) exchange(ctx context.Context, c *pgconn.PgConn) error {
	w.reply.reset()
	var err error
	switch {
	case w.shared != nil:
		err = w.askShared(ctx, c)
	case len(w.request.all) == 1:
		one := &w.request.all[0]
		r := c.ExecStatement(ctx, one.plan.description, one.params, one.formats, one.plan.results)
		err = w.reply.keep(one.plan, r)
	default:
		err = w.askAll(ctx, c)
	}
	switch {
	case err != nil:
		return err
	case isLeft(c), w.commits() && c.TxStatus() != idle:
		w.broken = true // an open transaction would take in what comes next
		return errors.New("no commit was acknowledged")
	case len(w.reply.ends) != len(w.request.all):
		w.broken = true
		return fmt.Errorf("%d answers to %d statements", len(w.reply.ends), len(w.request.all))
	}
	return nil
}

// commits reports whether no transaction may be open after a request.
func (w *wire) commits() bool {
	if w.shared != nil {
		return !w.shared.InTransaction()
	}
	return len(w.request.all) > 1
}

// askAll sends several statements with one commit.
func (w *wire) askAll(ctx context.Context, c *pgconn.PgConn) error {
	var batch pgconn.Batch
	for i := range w.request.all {
		x := &w.request.all[i]
		batch.ExecStatement(x.plan.description, x.params, x.formats, x.plan.results)
	}
	results := c.ExecBatch(ctx, &batch)
	for i := 0; results.NextResult() && i < len(w.request.all); i++ {
		// Its error is that of Close: one error ends all.
		_ = w.reply.keep(w.request.all[i].plan, results.ResultReader())
	}
	return results.Close()
}
