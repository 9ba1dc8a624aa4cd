package forupdate

import (
	"context"

	"github.com/rowlockdb/rowlock/lease"
)

// Sweep removes dead rows as every store does, and then the rows to be locked of keys that have no other row and are older than the
// retention: those are not counted. A row that somebody has locked stays.
func (s *Store) Sweep(ctx context.Context, o lease.SweepOptions) (removed int64, err error) {
	if removed, err = s.rows.Sweep(ctx, o); err == nil {
		_, err = s.keys.sweep(ctx, o)
	}
	return removed, err
}

// Sweep removes the rows of keys that no transaction has locked and that were made longer ago than the retention, and returns how many. A
// Locker makes a row for each key that it is given and leaves it there: call Sweep now and then (once an hour, with a retention of a day)
// where keys are new all the time, unless a Client on a [Store] with these tables does. On SQLite there are no rows.
func (l *Locker) Sweep(ctx context.Context, o lease.SweepOptions) (removed int64, err error) {
	if l.wholeFile() {
		return 0, ctx.Err()
	}
	return l.keys.sweep(ctx, o)
}
