package latch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// timeout bounds one statement.
	timeout = 5 * time.Second
	// patience bounds one call with all its repetitions.
	patience = 15 * time.Second
)

// task is a statement. It may run again, so that it must be idempotent.
type task func(ctx context.Context, on *conn.Session) error

type op = conn.Op[task]

func run(ctx context.Context, on *conn.Session, op *op) error { return op.Body(ctx, on) }

// server runs the statements of latches on its connections.
type server struct {
	d           *sqlstore.Dialect
	connections *conn.Set[task]
	kept        time.Duration // Config.Keep
}

// good reports whether the connection that returned an error can be used again.
func (s *server) good(err error) bool { return sqlstore.Judge(s.d, err).Class.Good() }

// write runs f until it was acknowledged, if it can be: every write here is idempotent, so that a
// repetition resolves an unknown outcome. Otherwise the error wraps lease.ErrUnknown.
func (s *server) write(ctx context.Context, verb, name string, f task) error {
	uncertain, err := s.ask(ctx, verb, name, f)
	if uncertain && !errors.Is(err, lease.ErrUnknown) {
		err = oneline.Join(lease.ErrUnknown, err)
	}
	return err
}

// read runs f until it is answered.
func (s *server) read(ctx context.Context, verb, name string, f task) error {
	_, err := s.ask(ctx, verb, name, f)
	return err
}

// ask reports whether a try had an unknown outcome and no later one was acknowledged.
func (s *server) ask(ctx context.Context, verb, name string, f task) (uncertain bool, _ error) {
	until := time.Now().Add(patience)
	for pauses := retry.Pauses(); ; {
		op := conn.NewOp(conn.Release, f, run)
		op.Alone, op.Until = true, until
		err := s.connections.Do(ctx, op)
		final := err != nil
		if err == nil {
			err = op.Err
		}
		if err == nil {
			return false, nil
		}
		class := sqlstore.Judge(s.d, err).Class
		if final {
			uncertain = uncertain || errors.Is(err, conn.ErrOrphaned)
		} else {
			uncertain = uncertain || class == sqlstore.Unknown
		}
		if final || !class.Retry() || time.Now().After(until) || !retry.Sleep(ctx, pauses.NextBackOff()) {
			err = s.explain(verb, name, err)
			if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
				err = oneline.Join(err, ctx.Err())
			}
			return uncertain, err
		}
	}
}

// explain turns a database's error into one of rowlock's.
func (s *server) explain(verb, name string, err error) error {
	what := sqlstore.What(verb+" latch", name)
	if errors.Is(err, conn.ErrClosed) {
		return closed(name)
	}
	v := sqlstore.Judge(s.d, err)
	switch {
	case errors.Is(v.As, lease.ErrPrivilege):
		return fmt.Errorf("%w: %s: %w; GRANT SELECT, INSERT, UPDATE, DELETE ON %s and ON %s TO the user",
			v.As, what, err, s.d.Fill("rowlock_latch"), s.d.Fill("rowlock_party"))
	case v.As == nil && errors.Is(err, adapter.ErrLate):
		return fmt.Errorf("%w: %s: %w", lease.ErrBusy, what, err)
	}
	return v.Explain(what, err)
}

func closed(name string) error { return fmt.Errorf("%w: latch %q", lease.ErrClosed, name) }
