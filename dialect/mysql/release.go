package mysql

import (
	"context"
	"errors"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// door is the user lock for which all sessions that listen wait. It exists while one listens.
func door(channel string) string { return channel + "_door" }

// Release clears the owner of one row, and reports whether another process waits for it. While no
// process listens it does not look for one that waits.
func (d *database) Release(ctx context.Context, s *conn.Session, l lease.Lease) (
	lease.Released, error,
) {
	looks, door, key := s.Heard, any(door(s.Channel)), any([]byte(l.Key))
	owner, token := any(conn.Bytes(l.Owner)), any(int64(l.Token))
	section, args := "release", []any{door, key, owner, token}
	if looks {
		section, args = "release-awaited", []any{door, key, conn.Bytes(s.Process), key, owner, token}
	}
	res, err := s.Exec(ctx, d.Text(section), args...)
	if err := changed(res, err); err != nil {
		if errors.Is(err, errNotTaken) {
			return lease.Released{Gone: true}, nil
		}
		return lease.Released{}, err
	}
	n, err := res.LastInsertId()
	if err != nil {
		return lease.Released{}, err
	}
	s.Heard = n%2 == 1
	if s.Heard && !looks {
		return lease.Released{Awaited: d.awaited(ctx, s, l.Key)}, nil
	}
	return lease.Released{Awaited: n >= 2, Looked: looks}, nil
}

// awaited is asked once the lease has been released. An error is a hint that is not sent.
func (d *database) awaited(ctx context.Context, s *conn.Session, key string) (waits bool) {
	err := s.QueryRow(ctx, d.Text("awaited"),
		[]any{conn.Bytes(s.Process), d.List([]string{key})}, &waits)
	return err == nil && waits
}
