package sqlstore

import (
	"context"

	"github.com/rowlockdb/rowlock/lease"
)

// Release runs a dialect's release section. It changes the owner of every row it matches, so that a driver which counts
// changed rows and one which counts matched rows agree.
func Release(ctx context.Context, s *Session, d Dialect, l lease.Lease) (lease.Released, error) {
	res, err := s.Exec(ctx, d.Text("release"), []byte(l.Key), Bytes(l.Owner), l.Token)
	if err != nil {
		return lease.Released{}, err
	}
	n, err := res.RowsAffected()
	return lease.Released{Gone: n == 0}, err
}
