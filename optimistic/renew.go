package optimistic

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// patience is how long a renewal that met locked rows goes on to try its leases one by one. Each
// locked one takes as long as the database waits for a lock, and the others must not expire
// meanwhile.
const patience = 2 * time.Second

// errUntried is the error of a lease for which there was no time left.
var errUntried = fmt.Errorf("%w: renewing took too long, behind leases that are locked", lease.ErrBusy)

// Renew extends the batch in one statement and then reads the rows: a lease is extended if its row
// names owner and token, and has as much time left as the update gives it. That it is alive would
// prove this only if the server's clock is not set back between the two. Renew counts no rows,
// because drivers count them in different ways. If a row is locked, as by the holder's own fence,
// the whole statement fails. Then each lease is tried by itself, and locked ones are left out of
// the batch until they are unlocked.
//
// SQLite's own renewal takes no row locks.
func (d swap) Renew(ctx context.Context, s *conn.Session, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	if d.OneWriter {
		return d.Database.Renew(ctx, s, reqs)
	}
	tried, sent := make([]error, len(reqs)), time.Now()
	clear, locked := d.probablyLocked.split(reqs)
	err := d.extendTogether(ctx, s, reqs, clear, tried)
	if err == nil {
		err = d.extendEach(ctx, s, reqs, locked, tried)
	}
	if err != nil {
		return nil, err
	}
	d.probablyLocked.learn(reqs, tried)
	return d.outcomes(ctx, s, reqs, tried, sent)
}

func (d swap) isConflict(err error) bool {
	return err != nil && sqlstore.Judge(d, err).Class == sqlstore.Conflict
}

func (d swap) extend(ctx context.Context, s *conn.Session, reqs []lease.RenewRequest) error {
	_, err := s.Exec(ctx, d.Text("cas-renew"), sqlstore.RenewList(reqs, conn.Micros))
	return err
}

// extendTogether extends those at these places in one statement, or one by one if one of them is
// locked.
func (d swap) extendTogether(
	ctx context.Context, s *conn.Session, reqs []lease.RenewRequest, at []int, tried []error,
) error {
	if len(at) == 0 {
		return nil
	}
	batch := make([]lease.RenewRequest, len(at))
	for n, i := range at {
		batch[n] = reqs[i]
	}
	err := d.extend(ctx, s, inKeyOrder(batch))
	switch {
	case !d.isConflict(err):
		return err
	case len(at) == 1:
		tried[at[0]] = err
		return nil
	}
	return d.extendEach(ctx, s, reqs, at, tried)
}

// inKeyOrder makes it unlikely that two batches wait for each other. The database may still join in
// another order; then one of them fails, and tries its leases one by one.
func inKeyOrder(reqs []lease.RenewRequest) []lease.RenewRequest {
	slices.SortFunc(reqs, func(a, b lease.RenewRequest) int { return cmp.Compare(a.Key, b.Key) })
	return reqs
}

// extendEach tries those at these places one by one, in another order each time, so that a few
// locked ones cannot always keep the same others from being tried. It notes each result: nil, a
// conflict, or errUntried.
func (d swap) extendEach(
	ctx context.Context, s *conn.Session, reqs []lease.RenewRequest, at []int, tried []error,
) error {
	began := time.Now()
	for _, n := range rand.Perm(len(at)) {
		i := at[n]
		if time.Since(began) > patience || !d.hasTime(ctx) {
			tried[i] = errUntried
			continue
		}
		if tried[i] = d.extend(ctx, s, reqs[i:i+1]); tried[i] != nil && !d.isConflict(tried[i]) {
			return tried[i]
		}
	}
	return nil
}

// hasTime reports whether a statement could meet a locked row and there would still be time to
// answer for the others.
func (d swap) hasTime(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return !ok || time.Until(end) > time.Duration(d.wait.Load())
}

// outcomes reads all of the rows. One whose expiry is no time counts as expired, as it does for
// those who take it, and costs the others nothing.
func (d swap) outcomes(
	ctx context.Context, s *conn.Session, reqs []lease.RenewRequest, tried []error, sent time.Time,
) ([]lease.Renewed, error) {
	out := make([]lease.Renewed, len(reqs))
	list := sqlstore.RenewList(reqs, conn.Micros)
	err := s.Query(ctx, d.Text("cas-renew-look"), []any{list}, func(row conn.Columns) error {
		var n int
		var remaining, clock int64
		if err := row.Scan(&n, &remaining, &clock); err != nil && !conn.IsBad(err) {
			return err
		}
		least := reqs[n-1].TTL - time.Since(sent) - slack
		out[n-1] = outcome(tried[n-1], conn.Duration(remaining), least, conn.Duration(clock))
		return nil
	})
	return out, err
}

// slack is by how much the server's clock may be ahead of ours between an update and the read after
// it.
const slack = 10 * time.Millisecond

// outcome is that of a row that still names its owner and token, with this time remaining, if an
// extended lease has at least that much. A lease that was not tried is not busy, because busy says
// that no client can take the key.
func outcome(tried error, remaining, least, clock time.Duration) lease.Renewed {
	out := lease.Renewed{Clock: clock}
	switch {
	case tried == errUntried:
		out.Err = tried
	case tried != nil, remaining > 0 && remaining < least:
		out.Outcome = lease.Busy
	case remaining > 0:
		out.Outcome = lease.Extended
	}
	return out
}
