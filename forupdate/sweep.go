package forupdate

import (
	"cmp"
	"context"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
)

// Sweep removes dead rows as every store does. Then it removes the rows of rowlock_hold whose keys
// have no other row and that are older than the retention; it does not count those. Locked rows
// stay.
func (s *Store) Sweep(ctx context.Context, o lease.SweepOptions) (removed int64, err error) {
	if removed, err = s.rows.Sweep(ctx, o); err == nil {
		_, err = s.keys.sweep(ctx, o)
	}
	return removed, err
}

// Sweep removes the rows of keys that no transaction has locked and that are older than the
// retention, and returns how many. A Locker makes a row for each key and leaves it there. If keys
// are new all the time, call Sweep regularly (once an hour, with a retention of a day), unless a
// Client on a [Store] with these tables does. On SQLite there are no rows.
func (l *Locker) Sweep(ctx context.Context, o lease.SweepOptions) (removed int64, err error) {
	if err := cmp.Or(isnil.Context("sweep", ctx), o.Check()); err != nil {
		return 0, err
	}
	if l.wholeFile() {
		return 0, ctx.Err()
	}
	return l.keys.sweep(ctx, o)
}
