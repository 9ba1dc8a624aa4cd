package sqlite

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Renew renews a batch in one statement. While another transaction has the file's write lock, such
// as the holder's own fence, nothing can be renewed or taken. What still names its owner and token
// is then answered busy.
func (d *database) Renew(ctx context.Context, s *conn.Session, reqs []lease.RenewRequest) (
	[]lease.Renewed, error,
) {
	b := batch{
		list: sqlstore.RenewList(reqs, millis),
		out:  make([]lease.Renewed, len(reqs)), at: make(map[lease.Lease]int, len(reqs)),
	}
	for i, r := range reqs {
		b.at[r.Lease] = i
	}
	err := d.mark(ctx, s, "renew", lease.Extended, b)
	if isBusy(err) {
		clear(b.out)
		err = d.mark(ctx, s, "renew-look", lease.Busy, b)
	}
	for i, r := range reqs {
		// A lease that comes twice has one row, and each time the same answer
		b.out[i] = b.out[b.at[r.Lease]]
	}
	return b.out, err
}

// batch finds the request that a returned row answers: RETURNING cannot name the request's place in
// the list.
type batch struct {
	list string
	out  []lease.Renewed
	at   map[lease.Lease]int
}

func (d *database) mark(
	ctx context.Context, s *conn.Session, section string, as lease.RenewOutcome, b batch,
) error {
	return s.Query(ctx, d.Text(section), []any{b.list}, func(row conn.Columns) error {
		var key, owner []byte
		var token lease.Token
		var clock, remaining int64
		if err := row.Scan(&key, &owner, &token, &clock, &remaining); err != nil {
			return err
		}
		if i, ok := b.at[lease.Lease{Key: string(key), Owner: lease.Owner(owner), Token: token}]; ok {
			b.out[i] = lease.Renewed{
				Outcome: as, Clock: conn.Duration(clock), Remaining: conn.Duration(remaining),
			}
		}
		return nil
	})
}
