package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/rowlockdb/rowlock/internal/conn"
)

// wire runs prepared statements with pgconn. It reads a reply to its end before anything of it is
// told: pgconn hands out rows as they come, and a row comes before its commit.
type wire struct {
	reply
	request
	on     *pgconn.PgConn // the session's, for as long as it lasts
	broken atomic.Bool    // also set by what a wrapper runs late
	shared *conn.Session  // the session, if other clients share it; see bracket
}

// plan is a prepared statement.
type plan struct {
	description *pgconn.StatementDescription
	results     []int16
	label       string // of the statement, for what ends its transaction
}

// wired has the session use pgx below database/sql, if no tracer of the pool and no wrapper around
// the driver is to see its statements.
func wired(s *conn.Session) error {
	var shared *conn.Session
	if s.Unprepared {
		shared = s
	}
	return s.Conn().Raw(func(c any) error {
		_, plain := c.(*stdlib.Conn)
		within, lets := c.(beneath)
		below := pgxOf(c)
		if !plain && !lets || below == nil || s.Relays || below.Config().Tracer != nil {
			return nil
		}
		w := &wire{on: below.PgConn(), shared: shared}
		if s.Wire = w; !plain {
			s.Wire = wrapped{w, within}
			return nil
		}
		s.Limit = limiter(below)
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
func (w *wire) Prepare(ctx context.Context, query string) (conn.Plan, error) {
	if w.broken.Load() {
		return nil, errBroken
	}
	var p *plan
	name := ""
	if w.shared == nil {
		name = nameOf(query)
	}
	err := w.pinned(ctx, func() error {
		d, err := w.on.Prepare(ctx, name, query, nil)
		if err == nil {
			p = planOf(d)
		}
		return err
	})
	if err != nil {
		w.left()
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

// left notes a connection on which nothing more can be sent: it has ended, or has an answer that
// was not read to its end.
func (w *wire) left() bool {
	if w.on.IsClosed() || w.on.IsBusy() {
		w.broken.Store(true)
		return true
	}
	return false
}

// idle is what ReadyForQuery says when no transaction is open. A transaction that was begun and
// forgotten makes an answer that looks like any other, and has no commit. Several statements never
// run within InTx.
const idle = 'I'

// Send sends the request, which Put has made on a connection that is not broken, and keeps the
// reply. The connection is idle after ReadyForQuery, which acknowledges the commit, and not before.
func (w *wire) Send(ctx context.Context) (err error) {
	w.request.sent = true
	w.reply.bytes, w.cells, w.ends = w.reply.bytes[:0], w.cells[:0], w.ends[:0]
	if cap(w.reply.bytes) > mostKept {
		w.reply.bytes, w.cells = nil, nil
	}
	commits := len(w.request.all) > 1 // no transaction may be open after it
	switch {
	case w.shared != nil:
		commits = !w.shared.InTransaction()
		err = w.askShared(ctx, commits)
	case len(w.request.all) == 1:
		one := &w.request.all[0]
		r := w.on.ExecStatement(ctx, one.plan.description, one.params, one.formats, one.plan.results)
		err = w.reply.keep(one.plan, r)
	default:
		err = w.askAll(ctx)
	}
	left := w.left()
	switch {
	case err != nil:
		return err
	case left, commits && w.on.TxStatus() != idle:
		w.broken.Store(true) // an open transaction would take in what comes next
		return errors.New("no commit was acknowledged")
	case len(w.reply.ends) != len(w.request.all):
		w.broken.Store(true)
		return fmt.Errorf("%d answers to %d statements", len(w.reply.ends), len(w.request.all))
	}
	return nil
}

// askAll sends several statements with one commit.
func (w *wire) askAll(ctx context.Context) error {
	var batch pgconn.Batch
	for i := range w.request.all {
		x := &w.request.all[i]
		batch.ExecStatement(x.plan.description, x.params, x.formats, x.plan.results)
	}
	results := w.on.ExecBatch(ctx, &batch)
	for i := 0; results.NextResult() && i < len(w.request.all); i++ {
		// Its error is that of Close: one error ends all.
		_ = w.reply.keep(w.request.all[i].plan, results.ResultReader())
	}
	return results.Close()
}
