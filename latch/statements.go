package latch

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// look reads a latch or barrier, whatever generation it is in. What it read may be forgotten by a
// failover: see keep.
func (s *Latches) look(ctx context.Context, row sqlstore.LatchRow) (sqlstore.LatchView, error) {
	var v sqlstore.LatchView
	err := s.read(ctx, "read", string(row.Name), func(ctx context.Context, on *sqlstore.Session) (err error) {
		v, err = sqlstore.LookAtLatch(s.d, row, func(query string, args []any, dest ...any) error {
			return on.QueryRow(ctx, query, args, dest...)
		})
		return err
	})
	if err != nil {
		return sqlstore.LatchView{}, err // v may still be written to
	}
	return v, nil
}

// changed runs a write that says whether it has found its row.
func (s *Latches) changed(
	ctx context.Context, verb string, row sqlstore.LatchRow,
	f func(context.Context, *sqlstore.Session) (bool, error),
) (bool, error) {
	found := false
	err := s.write(ctx, verb, string(row.Name), func(ctx context.Context, on *sqlstore.Session) (err error) {
		found, err = f(ctx, on)
		return err
	})
	if err != nil {
		return false, err
	}
	return found, nil
}

// keep writes to the row, so that what was read of it before is committed for good once that is
// acknowledged, and so that it lasts for Config.Keep from now.
func (s *Latches) keep(ctx context.Context, row sqlstore.LatchRow) (bool, error) {
	return s.changed(ctx, "confirm", row, func(ctx context.Context, on *sqlstore.Session) (bool, error) {
		return sqlstore.KeepLatch(ctx, on, s.d, row, s.cfg.Keep)
	})
}

func (s *Latches) count(ctx context.Context, row sqlstore.LatchRow, party string) (bool, error) {
	return s.changed(ctx, "count down", row, func(ctx context.Context, on *sqlstore.Session) (bool, error) {
		return sqlstore.CountLatch(ctx, on, s.d, row, party)
	})
}

func (s *Latches) reset(
	ctx context.Context, row sqlstore.LatchRow, next lease.Owner, least int,
) (bool, error) {
	return s.changed(ctx, "reset", row, func(ctx context.Context, on *sqlstore.Session) (bool, error) {
		return sqlstore.ResetLatch(ctx, on, s.d, row, next, s.cfg.Keep, least)
	})
}

// create makes the row, or begins another generation in an expired one. Another process may be
// first.
func (s *Latches) create(ctx context.Context, row sqlstore.LatchRow, parties int, expired bool) error {
	return s.write(ctx, "open", string(row.Name), func(ctx context.Context, on *sqlstore.Session) error {
		if expired {
			return sqlstore.TakeLatch(ctx, on, s.d, row, parties, s.cfg.Keep)
		}
		return sqlstore.MakeLatch(ctx, on, s.d, row, parties, s.cfg.Keep)
	})
}
