package optimistic

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// patience is for how long a renewal that met locked rows goes on to try its leases one by one. Each that is locked takes as long as the
// database waits for a lock, and the leases that are not must not expire meanwhile.
const patience = 2 * time.Second

// errUntried is a lease's for which there was no time left.
var errUntried = fmt.Errorf("%w: renewing took too long, behind leases that are locked", lease.ErrBusy)

// Renew extends the batch in one statement and then looks: whoever's lease is still alive after an update that left nobody out was
// extended by it, because a lease that has expired or was given up never comes back. So nobody has to count rows, which not every driver
// counts alike. If a row is locked, as the holder's own fence has it, the whole statement fails; then each lease is tried by itself.
//
// SQLite's own renewal takes no row locks as it is.
func (d swap) Renew(ctx context.Context, s *dialect.Session, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	if d.Lanes() == 1 {
		return d.Dialect.Renew(ctx, s, reqs)
	}
	tried := make([]error, len(reqs))
	err := d.extend(ctx, s, inKeyOrder(reqs))
	if d.isConflict(err) {
		tried, err = d.extendEach(ctx, s, reqs, err)
	}
	if err != nil {
		return nil, err
	}
	return d.outcomes(ctx, s, reqs, tried)
}

func (d swap) isConflict(err error) bool {
	return err != nil && dialect.Judge(d, err).Class == dialect.Conflict
}

func (d swap) extend(ctx context.Context, s *dialect.Session, reqs []lease.RenewRequest) error {
	_, err := d.guarded(ctx, s, "cas-renew", list(reqs))
	return err
}

func list(reqs []lease.RenewRequest) string {
	return dialect.RenewList(reqs, func(r lease.RenewRequest) int64 { return dialect.Micros(r.TTL) })
}

// inKeyOrder makes it unlikely that two batches wait for each other. The database may still join in another order: then one of them
// fails, and tries its leases one by one.
func inKeyOrder(reqs []lease.RenewRequest) []lease.RenewRequest {
	return slices.SortedFunc(slices.Values(reqs), func(a, b lease.RenewRequest) int { return cmp.Compare(a.Key, b.Key) })
}

// extendEach tries the leases one by one, and in another order each time, so that a few locked ones cannot keep the same others from
// being tried again and again. It returns what each met: nil, a conflict, or errUntried.
func (d swap) extendEach(ctx context.Context, s *dialect.Session, reqs []lease.RenewRequest, conflict error) ([]error, error) {
	tried := make([]error, len(reqs))
	if len(reqs) == 1 {
		return append(tried[:0], conflict), nil
	}
	began := time.Now()
	for _, i := range rand.Perm(len(reqs)) {
		if time.Since(began) > patience {
			tried[i] = errUntried
			continue
		}
		if tried[i] = d.extend(ctx, s, reqs[i:i+1]); tried[i] != nil && !d.isConflict(tried[i]) {
			return nil, tried[i]
		}
	}
	return tried, nil
}

// outcomes looks at all of them.
func (d swap) outcomes(ctx context.Context, s *dialect.Session, reqs []lease.RenewRequest, tried []error) ([]lease.Renewed, error) {
	out := make([]lease.Renewed, len(reqs))
	err := s.Query(ctx, d.Text("cas-renew-look"), []any{list(reqs)}, func(row dialect.Columns) error {
		var n int
		var alive bool
		var clock int64
		err := row.Scan(&n, &alive, &clock)
		if err == nil {
			out[n-1] = outcome(tried[n-1], alive, dialect.Duration(clock))
		}
		return err
	})
	return out, err
}

// outcome is that of a row which still names its owner and token. Who was not tried is not busy: busy says that nobody can take the key.
func outcome(tried error, alive bool, clock time.Duration) lease.Renewed {
	out := lease.Renewed{Clock: clock}
	switch {
	case tried == errUntried:
		out.Err = tried
	case tried != nil:
		out.Outcome = lease.Busy
	case alive:
		out.Outcome = lease.Extended
	}
	return out
}
