package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rowlockdb/rowlock/internal/conn"
)

// beneath is a wrapper around a driver's connection that lets the wire through, one operation at a
// time, each of which it may break. The operation may run after Beneath has returned an error.
type beneath interface {
	Beneath(ctx context.Context, verb, query string, run func(context.Context, any) error) error
	Unwrap() any
}

// wrapped is a wire through a wrapper. An error that is not the server's leaves open what the
// wrapper still does, so that nothing more is sent.
type wrapped struct{ *wire }

func (w wrapped) Prepare(ctx context.Context, driverConn any, query string) (conn.Plan, error) {
	var p conn.Plan
	err := w.through(ctx, driverConn, "prepare", query, func(ctx context.Context, c any) (err error) {
		p, err = w.wire.Prepare(ctx, c, query)
		return err
	})
	if err != nil {
		return nil, err // p may still be written to
	}
	return p, nil
}

func (w wrapped) Send(ctx context.Context, driverConn any) error {
	verb := "exec"
	if w.request.returns() {
		verb = "query"
	}
	return w.through(ctx, driverConn, verb, w.request.text(), w.wire.Send)
}

func (w wrapped) through(ctx context.Context, driverConn any, verb, query string,
	f func(context.Context, any) error,
) error {
	c, ok := driverConn.(beneath)
	switch {
	case w.broken.Load():
		return errBroken
	case !ok:
		return fmt.Errorf("%T has changed into a driver that lets nothing through", driverConn)
	}
	err := c.Beneath(ctx, verb, query, f)
	if err != nil && !errors.As(err, new(*pgconn.PgError)) {
		w.broken.Store(true)
	}
	return err
}
