package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Sharer = (*Store)(nil)

// shares refuses a store whose rows are no locks by themselves, and tables without members.
func (s *Store) shares() error {
	if s.optimistic || s.d.Names().Placement != lease.PlacementTable {
		return fmt.Errorf("%w: its keys cannot be shared", lease.ErrUnsupported)
	}
	return s.sets.Need(sqlstore.Shared)
}

// Share makes members, in one statement for all requests of one note that come together, and looks
// at the rows of those that were not let in.
func (s *Store) Share(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	if err := s.shares(); err != nil {
		return nil, err
	}
	out := make([]lease.Acquired, len(reqs))
	asked, notes := make([]lease.RenewRequest, len(reqs)), make(map[string][]int, 1)
	for i, r := range reqs {
		if err := r.Check(); err != nil {
			return nil, err
		}
		asked[i] = lease.RenewRequest{Lease: lease.Lease{Key: r.Key, Owner: r.Owner}, TTL: r.TTL}
		notes[r.Note] = append(notes[r.Note], i)
	}
	for note, at := range notes {
		for n, m := range s.joins.do(ctx, note, adapter.Pick(asked, at)) {
			out[at[n]] = m.acquired()
		}
	}
	return out, only(out, func(a lease.Acquired) error { return a.Err })
}

// again asks once more for keys that were refused because a reader group held them that has ended
// by now, or ends because it has no live member; acquire may do so too, for a reader group that
// came between. again is never called for other keys, so that it costs them nothing.
func (s *Store) again(
	ctx context.Context, reqs []lease.AcquireRequest, out []lease.Acquired,
	acquire func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error),
) []lease.Acquired {
	free := s.ended(ctx, reqs, out)
	if len(free) == 0 {
		return out
	}
	next, err := acquire(ctx, adapter.Pick(reqs, free))
	for n, i := range free {
		switch {
		case err != nil && len(next) != len(free):
			out[i] = failed(out[i], err)
		case next[n].Err != nil:
			out[i] = failed(out[i], next[n].Err)
		default:
			next[n].Unknown = next[n].Unknown || out[i].Unknown
			out[i] = next[n]
		}
	}
	s.unveil(ctx, keysOf(reqs), out)
	return out
}

// againAll is again for requests that are granted together or not at all. An error is that of all
// of them: what was asked the second time may have been granted.
func (s *Store) againAll(
	ctx context.Context, reqs []lease.AcquireRequest, out []lease.Acquired,
	acquire func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error),
) ([]lease.Acquired, error) {
	if len(s.ended(ctx, reqs, out)) == 0 {
		return out, nil
	}
	next, err := acquire(ctx, reqs)
	if err != nil {
		uncertain := slices.ContainsFunc(out, func(a lease.Acquired) bool { return a.Unknown })
		return nil, failed(lease.Acquired{Unknown: uncertain}, err).Err
	}
	for i := range next {
		next[i].Unknown = next[i].Unknown || out[i].Unknown
	}
	s.unveil(ctx, keysOf(reqs), next)
	return next, nil
}

// ended returns the places of the keys that reader groups held which have ended.
func (s *Store) ended(
	ctx context.Context, reqs []lease.AcquireRequest, out []lease.Acquired,
) (free []int) {
	var at []int
	for i := range out {
		if isGroups(out[i]) {
			at = append(at, i)
		}
	}
	keys := keysOf(reqs)
	s.unveil(ctx, keys, out)
	return s.endGroups(ctx, keys, out, at)
}

// endGroups ends those of the reader groups at these places that have no live member. It returns
// the places of the keys that are free by that.
func (s *Store) endGroups(
	ctx context.Context, keys []string, out []lease.Acquired, at []int,
) (free []int) {
	for _, i := range at {
		if out[i].Err != nil || !out[i].Possible {
			continue
		}
		out[i] = lease.Acquired{Locked: true, Unknown: out[i].Unknown}
		if ended, err := s.endGroup(ctx, keys[i]); err != nil {
			out[i] = failed(out[i], err)
		} else if ended {
			free = append(free, i)
		}
	}
	return free
}

// Downgrade makes leases reader groups of one, one after another.
func (s *Store) Downgrade(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	if err := s.shares(); err != nil {
		return nil, err
	}
	out := make([]lease.Renewed, len(reqs))
	ctx, cancel := s.oneAfterAnother(ctx, len(reqs))
	defer cancel()
	for i, r := range reqs {
		if out[i].Err = r.CheckDowngrade(); out[i].Err == nil {
			out[i] = s.downgrade(ctx, r)
		}
	}
	return out, only(out, func(r lease.Renewed) error { return r.Err })
}

func (s *Store) downgrade(ctx context.Context, r lease.RenewRequest) lease.Renewed {
	group := lease.ReaderGroup(r.Token)
	made, err := ask(ctx, s.engine, about{conn.Release, "downgrade", r.Key},
		func(ctx context.Context, session *conn.Session) (made bool, err error) {
			err = session.InTx(ctx, func() error {
				n, err := session.Change(ctx, s.d.Text("readers-make"), conn.Bytes(group), []byte(r.Key),
					conn.Bytes(r.Owner), r.Token)
				if err != nil || n == 0 {
					return err
				}
				n, err = session.Change(ctx, s.d.Text("readers-first"), conn.Bytes(r.Owner),
					conn.Micros(r.TTL), []byte(r.Key), conn.Bytes(group))
				if made = n == 1; err == nil && !made {
					err = vanished("the first member of a reader group was not noted")
				}
				return err
			})
			return made, err
		})
	switch {
	case err != nil:
		return lease.Renewed{Err: err}
	case made:
		return lease.Renewed{Outcome: lease.Extended}
	}
	// An earlier try may have made it: the renewal is a commit after that.
	r.Shared = true
	a := s.renewMembers(ctx, []lease.RenewRequest{r})[0]
	if a.Err == nil && a.Outcome == lease.Busy {
		a.Err = fmt.Errorf("%w: downgrade %q: the row of its member is locked", lease.ErrBusy, r.Key)
	}
	if a.Err != nil && !errors.Is(a.Err, lease.ErrUnknown) { // no lease is what it was before
		a.Err = oneline.Join(lease.ErrUnknown, a.Err)
	}
	return a
}

// Intend notes or removes intents, in one statement.
func (s *Store) Intend(ctx context.Context, waiter lease.Owner, keys []string, d time.Duration) error {
	if err := s.shares(); err != nil {
		return err
	}
	if waiter.IsZero() {
		return fmt.Errorf("%w: intent: the zero owner names no caller; use lease.NewOwner",
			lease.ErrConfig)
	}
	if d <= 0 {
		return s.note(ctx, "unintend", keys, s.ordered(keys), conn.Bytes(waiter))
	}
	return s.note(ctx, "intend", keys, conn.Bytes(waiter), conn.Micros(d), s.ordered(keys))
}
