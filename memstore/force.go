package memstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.ForceReleaser = (*Store)(nil)

// ForceRelease takes a lease away. See [lease.ForceReleaser].
func (s *Store) ForceRelease(ctx context.Context, r lease.ForceRequest) (lease.Forced, error) {
	if err := cmp.Or(r.Check(), ctx.Err()); err != nil {
		return lease.Forced{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.forced {
		if f.Key == r.Key && f.ID == r.ID {
			return f, nil
		}
	}
	row := s.rows[r.Key]
	switch {
	case row != nil && row.placement != lease.PlacementTable:
		return lease.Forced{}, fmt.Errorf("%w: force release of %q", lease.ErrMoved, r.Key)
	case row == nil || row.owner.IsZero():
		return lease.Forced{}, fmt.Errorf("%w: force release of %q: the key is free", lease.ErrNotHeld, r.Key)
	case r.Token != 0 && r.Token != row.token:
		return lease.Forced{}, fmt.Errorf("%w: force release of %q: its token is %d and not %d",
			lease.ErrNotHeld, r.Key, row.token, r.Token)
	}
	return s.forceLocked(time.Now(), row, r), nil
}

func (s *Store) forceLocked(now time.Time, row *row, r lease.ForceRequest) lease.Forced {
	f := lease.Forced{
		ForceRequest: r, Lease: lease.Lease{Key: r.Key, Owner: row.owner, Token: row.token},
		Note: row.holder(now).Note, Raised: min(row.token+1, lease.MaxToken-1), At: now,
	}
	row.owner, row.note, row.expires, row.members, row.token = lease.Owner{}, "", now, nil, f.Raised
	at, _ := slices.BinarySearchFunc(s.forced, f, inTurn) // last, unless the clock stands
	s.forced = slices.Insert(s.forced, at, f)
	return f
}

// inTurn compares records by time, and those of one time as they are listed.
func inTurn(a, b lease.Forced) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Raised, b.Raised), bytes.Compare(a.ID[:], b.ID[:]))
}

// ForceReleases lists records, latest first. See [lease.ForceReleaser].
func (s *Store) ForceReleases(ctx context.Context, f lease.ForcedFilter) ([]lease.Forced, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Last.At.IsZero() {
		f.Last = lease.Forced{At: f.Before}
	}
	var out []lease.Forced
	for _, one := range slices.Backward(s.forced) {
		if (f.Key == "" || one.Key == f.Key) && strings.HasPrefix(one.Key, f.Prefix) &&
			(f.Last.At.IsZero() || inTurn(one, f.Last) < 0) {
			out = append(out, one)
		}
	}
	return out[:min(len(out), cmp.Or(max(f.Limit, 0), 1000))], nil
}
