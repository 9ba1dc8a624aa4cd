package main

import (
	"context"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/optimistic"
)

// patiently calls f again while the database is too busy for it: f is the BEGIN of a transaction,
// or a statement by itself. SQLite has one writer, and those who wait for it have no order: of many
// tills one can find the file locked for all of its busy_timeout. Nothing was changed then, so it
// may ask again.
func (s *shop) patiently(ctx context.Context, f func() error) error {
	return optimistic.Retry(ctx, func(context.Context) error {
		err := f()
		if err != nil && isBusy(err) {
			return busy{err}
		}
		return err
	})
}

// isBusy reports whether the database has refused a statement because of another at the same
// moment.
func isBusy(err error) bool {
	return slices.ContainsFunc([]string{
		"SQLITE_BUSY", "Error 1205", "Error 1213", "SQLSTATE 40001", "SQLSTATE 40P01", "SQLSTATE 55P03",
	}, func(code string) bool { return strings.Contains(err.Error(), code) })
}

// busy is an error that passes.
type busy struct{ error }

func (b busy) Unwrap() []error { return []error{optimistic.ErrConflict, b.error} }

// exec runs a statement by itself.
func (s *shop) exec(ctx context.Context, query string, args ...any) error {
	return s.patiently(ctx, func() error {
		_, err := s.db.ExecContext(ctx, s.sql(query), args...)
		return err
	})
}
