package sqlite

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// Renew renews a batch in one statement. While somebody has the file's write lock, as the holder's own fence does, nothing
// can be renewed and nothing can be taken: what still names its owner and token is answered busy.
func (d *Dialect) Renew(ctx context.Context, s *dialect.Session, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	out := make([]lease.Renewed, len(reqs))
	list := dialect.RenewList(reqs, func(r lease.RenewRequest) int64 { return millis(r.TTL) })
	err := d.mark(ctx, s, "renew", list, lease.Extended, out)
	if isBusy(err) {
		clear(out)
		err = d.mark(ctx, s, "renew-look", list, lease.Busy, out)
	}
	return out, err
}

func (d *Dialect) mark(ctx context.Context, s *dialect.Session, section, list string, as lease.RenewOutcome, out []lease.Renewed) error {
	return s.Query(ctx, d.Text(section), []any{list}, func(rows *sql.Rows) error {
		var n int
		var clock int64
		if err := rows.Scan(&n, &clock); err != nil {
			return err
		}
		out[n] = lease.Renewed{Outcome: as, Clock: dialect.Duration(clock)}
		return nil
	})
}
