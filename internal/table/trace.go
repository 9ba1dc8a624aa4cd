package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Tracer = (*Store)(nil)

// WriteTrace is one transaction. It is tried once, because a second try might add the events twice.
func (s *Store) WriteTrace(ctx context.Context, events []lease.TraceEvent) error {
	if err := cmp.Or(lease.CheckTrace(events), s.sets.Need(sqlstore.Trace)); err != nil || len(events) == 0 {
		return err
	}
	return s.trace(ctx, "write the trace", "", "is the table locked?",
		func(ctx context.Context, session *conn.Session) error {
			err := sqlstore.WriteTrace(ctx, session, s.d, events)
			if v := sqlstore.Judge(s.d, err); err != nil && v.Class == sqlstore.Refused && v.As == nil {
				err = fmt.Errorf("%w: %w", lease.ErrCorrupt, err) // no other try will succeed
			}
			return err
		})
}

// ReadTrace is one statement that locks nothing.
func (s *Store) ReadTrace(
	ctx context.Context, f lease.TraceFilter,
) (all []lease.TraceEvent, err error) {
	f.Limit = cmp.Or(max(f.Limit, 0), 1000)
	err = s.trace(ctx, "read the trace of", cmp.Or(f.Key, f.Prefix),
		"name one Key, or ask for fewer events (Limit), because a Prefix reads all later ones too",
		func(ctx context.Context, session *conn.Session) error {
			var err error
			if all, err = sqlstore.ReadTrace(ctx, session, s.d, f); err != nil {
				return conn.NotSent{Err: err} // it only reads
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// SweepTrace removes a batch in each statement, until one was not full.
func (s *Store) SweepTrace(ctx context.Context, o lease.SweepOptions) (removed int64, err error) {
	if err := o.Check(); err != nil {
		return 0, err
	}
	batch := cmp.Or(max(o.Batch, 0), 200)
	for {
		n, err := s.sweepTrace(ctx, o, batch)
		if removed += n; err != nil || n < int64(batch) {
			return removed, err
		}
		if !retry.Sleep(ctx, o.Pause) {
			return removed, ctx.Err()
		}
	}
}

func (s *Store) sweepTrace(ctx context.Context, o lease.SweepOptions, batch int) (n int64, err error) {
	err = s.trace(ctx, "sweep the trace", "", "the next sweep goes on",
		func(ctx context.Context, session *conn.Session) (err error) {
			n, err = sqlstore.SweepTrace(ctx, session, s.d, o.Retention, batch)
			return err
		})
	return n, err
}

// deskTimeout bounds a statement of the trace. It is below the bounds of the servers, which end
// what a driver leaves.
const deskTimeout = 4 * time.Second

// trace runs f on the desk, once. slow is the cure for what does not end in time.
func (s *Store) trace(
	ctx context.Context, verb, key, slow string,
	f func(context.Context, *conn.Session) error,
) error {
	if err := s.sets.Need(sqlstore.Trace); err != nil {
		return err
	}
	if n := s.desk.needs; n > 0 {
		return fmt.Errorf("%w: %s: the pool has no connection to spare: MaxOpenConns must be at least %d",
			lease.ErrPool, sqlstore.What(verb, key), n)
	}
	short, cancel := context.WithTimeout(ctx, deskTimeout)
	defer cancel()
	err := s.desk.use(short, f)
	if err == nil {
		return nil
	}
	return s.late(ctx, short, s.explain(verb, key, err), slow)
}

// late says whose time is over: the caller's, or the trace's own. A driver may name neither.
func (s *Store) late(ctx, short context.Context, err error, slow string) error {
	switch {
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w: %w", err, ctx.Err())
	case ctx.Err() == nil && short.Err() != nil:
		return fmt.Errorf("%w: it has not ended in %s: %s", err, deskTimeout, slow)
	}
	return err
}
