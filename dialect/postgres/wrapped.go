package postgres

import (
	"context"
	"errors"

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
type wrapped struct {
	*wire
	by beneath
}

func (w wrapped) Prepare(ctx context.Context, query string) (conn.Plan, error) {
	var p conn.Plan
	err := w.through(ctx, "prepare", query, func(ctx context.Context, _ any) (err error) {
		p, err = w.wire.Prepare(ctx, query)
		return err
	})
	if err != nil {
		return nil, err // p may still be written to
	}
	return p, nil
}

func (w wrapped) Send(ctx context.Context) error {
	verb := "exec"
	if w.request.returns() {
		verb = "query"
	}
	return w.through(ctx, verb, w.request.text(), func(ctx context.Context, _ any) error {
		return w.wire.Send(ctx)
	})
}

func (w wrapped) through(
	ctx context.Context, verb, query string, f func(context.Context, any) error,
) error {
	if w.broken.Load() {
		return errBroken
	}
	err := w.by.Beneath(ctx, verb, query, f)
	if err != nil && !errors.As(err, new(*pgconn.PgError)) {
		w.broken.Store(true)
	}
	return err
}
