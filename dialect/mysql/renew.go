package mysql

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// Renew renews a batch in one transaction: lock what nobody else has locked, extend what of it is alive, and see of the rest
// whether it is busy or lost. An UPDATE has no SKIP LOCKED here, and would wait for the holder's own fence.
func (d *Dialect) Renew(ctx context.Context, s *dialect.Session, reqs []lease.RenewRequest) (out []lease.Renewed, err error) {
	err = s.InTx(ctx, func() error {
		out = make([]lease.Renewed, len(reqs))
		return d.renew(ctx, s, reqs, out)
	})
	return out, err
}

func (d *Dialect) renew(ctx context.Context, s *dialect.Session, reqs []lease.RenewRequest, out []lease.Renewed) error {
	list := dialect.RenewList(reqs, func(lease.RenewRequest) int64 { return 0 })
	locked := make([]bool, len(reqs))
	var alive []dialect.Wanted
	err := s.Query(ctx, d.Text("renew-lock"), []any{list}, func(rows *sql.Rows) error {
		var n, clock int64
		var living bool
		if err := rows.Scan(&n, &living, &clock); err != nil {
			return err
		}
		locked[n-1] = true
		out[n-1].Clock = dialect.Duration(clock)
		if living {
			out[n-1].Outcome = lease.Extended
			r := reqs[n-1]
			alive = append(alive, dialect.Wanted{Key: hex.EncodeToString([]byte(r.Key)), TTL: dialect.Micros(r.TTL)})
		}
		return nil
	})
	if err == nil && len(alive) > 0 {
		err = d.extend(ctx, s, alive)
	}
	if err == nil && !all(locked) {
		err = d.busy(ctx, s, list, locked, out)
	}
	return err
}

func (d *Dialect) extend(ctx context.Context, s *dialect.Session, alive []dialect.Wanted) error {
	list, err := json.Marshal(alive)
	if err == nil {
		_, err = s.Exec(ctx, d.Text("renew"), string(list))
	}
	return err
}

func (d *Dialect) busy(ctx context.Context, s *dialect.Session, list string, locked []bool, out []lease.Renewed) error {
	return s.Query(ctx, d.Text("renew-look"), []any{list}, func(rows *sql.Rows) error {
		var n int
		if err := rows.Scan(&n); err != nil {
			return err
		}
		if !locked[n-1] {
			out[n-1].Outcome = lease.Busy
		}
		return nil
	})
}

func all(flags []bool) bool {
	for _, f := range flags {
		if !f {
			return false
		}
	}
	return true
}
