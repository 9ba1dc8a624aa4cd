package sqlstore

import (
	"context"

	"github.com/rowlockdb/rowlock/lease"
)

// HandOver runs a dialect's hand-over section. It need return nothing: the row had From's token, or was not changed.
func HandOver(ctx context.Context, s *Session, d Dialect, h lease.HandOver, args ...any) (lease.Acquired, error) {
	res, err := s.Exec(ctx, d.Text("hand-over"), args...)
	if err != nil {
		return lease.Acquired{}, err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 0 {
		return lease.Acquired{}, err
	}
	return lease.Acquired{Granted: true, Token: h.From.Token + 1}, nil
}
