package latch

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/latch/internal/rows"
	"github.com/rowlockdb/rowlock/lease"
)

// look reads a latch or barrier, whatever generation it is in. What it read may be forgotten by a
// failover: see keep.
func (s *server) look(ctx context.Context, row rows.Row) (rows.View, error) {
	var v rows.View
	err := s.read(ctx, "read", string(row.Name), func(ctx context.Context, on *conn.Session) (err error) {
		v, err = rows.LookAt(s.d, row, func(query string, args []any, dest ...any) error {
			return on.QueryRow(ctx, query, args, dest...)
		})
		return err
	})
	if err != nil {
		return rows.View{}, err // v may still be written to
	}
	return v, nil
}

// changed runs a write that says whether it has found its row.
func (s *server) changed(ctx context.Context, verb string, c rows.Change) (bool, error) {
	found := false
	err := s.write(ctx, verb, string(c.Name), func(ctx context.Context, on *conn.Session) (err error) {
		found, err = c.Run(ctx, on, s.d)
		return err
	})
	return err == nil && found, err // found may still be written to after an error
}

// keep writes to the row, so that what was read of it before is committed for good once that is
// acknowledged, and so that it lasts for Config.Keep from now.
func (s *server) keep(ctx context.Context, row rows.Row) (bool, error) {
	return s.changed(ctx, "confirm", row.Keep(s.kept))
}

func (s *server) count(ctx context.Context, row rows.Row, party string) (bool, error) {
	return s.changed(ctx, "count down", row.Count(party))
}

func (s *server) reset(ctx context.Context, row rows.Row, next lease.Owner, least int) (bool, error) {
	return s.changed(ctx, "reset", row.Reset(next, s.kept, least))
}

// create makes the row, or begins another generation in an expired one. Another process may be
// first.
func (s *server) create(ctx context.Context, row rows.Row, parties int, expired bool) error {
	c := row.Make(parties, s.kept)
	if expired {
		c = row.Take(parties, s.kept)
	}
	_, err := s.changed(ctx, "open", c)
	return err
}
