package mysql

import (
	"context"
	"database/sql"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Renew extends in one statement what no other transaction has locked. If that did not extend
// everything, two more statements find the outcome of each. None of them leaves anything locked, so
// a client may vanish between any two of them.
func (d *database) Renew(ctx context.Context, s *conn.Session, reqs []lease.RenewRequest) (
	[]lease.Renewed, error,
) {
	res, err := s.Exec(ctx, d.Text("renew"), sqlstore.RenewList(reqs, conn.Micros))
	if err != nil {
		return nil, err
	}
	rows, clock, err := counted(res)
	if err != nil {
		return nil, err
	}
	out := make([]lease.Renewed, len(reqs))
	if rows != int64(len(reqs)) || repeats(reqs) {
		return out, d.sort(ctx, s, reqs, clock, out)
	}
	for i := range out {
		out[i] = lease.Renewed{Outcome: lease.Extended, Clock: conn.Duration(clock)}
	}
	return out, nil
}

// counted returns how many rows were extended, and the server's clock if there were any.
func counted(res sql.Result) (rows, clock int64, err error) {
	if rows, err = res.RowsAffected(); err == nil {
		clock, err = res.LastInsertId()
	}
	return rows, clock, err
}

// repeats reports whether a lease may come twice. Its row is then extended once, and it depends on
// clientFoundRows whether the server counts it once or twice. The watchdog sends every lease once.
func repeats(reqs []lease.RenewRequest) bool {
	if len(reqs) < 2 {
		return false
	}
	seen := make(map[string]struct{}, len(reqs))
	for i := range reqs {
		seen[reqs[i].Key] = struct{}{}
	}
	return len(seen) < len(reqs)
}

// sort separates what was extended, which has the expiry that the statement gave it, from what was
// locked and what is lost. A count that is too low proves nothing, because a row whose expiry was
// right already may not be counted as changed.
func (d *database) sort(
	ctx context.Context, s *conn.Session, reqs []lease.RenewRequest, clock int64,
	out []lease.Renewed,
) error {
	list := sqlstore.RenewList(reqs, func(ttl time.Duration) int64 { return clock + conn.Micros(ttl) })
	locked, all := make([]bool, len(reqs)), 0
	err := s.Query(ctx, d.Text("renew-lock"), []any{list}, func(row conn.Columns) error {
		var n, remaining, clock int64
		var extended bool
		if err := row.Scan(&n, &extended, &remaining, &clock); err != nil && !conn.IsBad(err) {
			return err
		}
		all++
		locked[n-1] = true
		out[n-1] = lockable(extended, conn.Duration(remaining))
		out[n-1].Clock = conn.Duration(clock)
		return nil
	})
	if err == nil && all < len(reqs) {
		err = d.busy(ctx, s, list, locked, out)
	}
	return err
}

// lockable answers for a row that could be locked after the renewal: if it is alive and was not
// extended, it could not be locked then. One whose expiry is no time, such as 0000-00-00, counts as
// expired, as it does for those who take it.
func lockable(extended bool, remaining time.Duration) lease.Renewed {
	switch {
	case extended:
		return lease.Renewed{Outcome: lease.Extended}
	case remaining > 0:
		return lease.Renewed{Outcome: lease.Busy, Remaining: remaining}
	}
	return lease.Renewed{Outcome: lease.Lost}
}

// busy finds out which of the rows that could not be locked are still the holder's.
func (d *database) busy(
	ctx context.Context, s *conn.Session, list string, locked []bool, out []lease.Renewed,
) error {
	return s.Query(ctx, d.Text("renew-look"), []any{list}, func(row conn.Columns) error {
		var n int
		var extended bool
		var remaining int64
		if err := row.Scan(&n, &extended, &remaining); err != nil && !conn.IsBad(err) {
			return err
		}
		switch {
		case locked[n-1]:
		case extended:
			out[n-1].Outcome = lease.Extended
		default:
			out[n-1].Outcome, out[n-1].Remaining = lease.Busy, conn.Duration(remaining)
		}
		return nil
	})
}
