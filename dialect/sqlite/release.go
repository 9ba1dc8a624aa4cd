package sqlite

import (
	"context"
	"errors"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// Release clears the owner of one row. Its commit may be relaxed.
func (d *database) Release(ctx context.Context, s *conn.Session, l lease.Lease) (
	out lease.Released, err error,
) {
	err = commit(ctx, s, true, func() error {
		out, err = d.Base.Release(ctx, s, l)
		return err
	})
	return out, err
}

// commit runs f, which commits once. If all that it does is to release, and the session is relaxed,
// the commit does not wait for the disk. The next commit that does makes this one durable too,
// because it writes all of the log to the disk. The two settings take less than a tenth of the time
// of one such write.
//
// It sends the settings unprepared: SQLite makes this one when it compiles the statement, so that a
// prepared one would do nothing the second time.
func commit(ctx context.Context, s *conn.Session, releases bool, f func() error) error {
	if !releases || !s.Relaxed {
		return f()
	}
	// If one of the settings fails, the connection is dropped, because a grant would not be durable
	// on it. The first may have been made although it failed: the driver returns the
	// error of a ctx that ends meanwhile.
	if _, err := s.Conn().ExecContext(ctx, `PRAGMA synchronous = NORMAL`); err != nil {
		return conn.Unsettled{Err: err}
	}
	err := f()
	if _, back := s.Conn().ExecContext(ctx, `PRAGMA synchronous = FULL`); back != nil {
		unsent := errors.As(err, new(conn.NotSent))
		return conn.Unsettled{Err: oneline.Join(err, back), Committing: !unsent}
	}
	return err
}
