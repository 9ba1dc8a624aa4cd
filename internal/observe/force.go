package observe

import (
	"context"
	"errors"
	"slices"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

// mostForced is how many forced releases between two listings are told.
const mostForced = 100

// tellForced tells which locks operators took away since the last listing, and leaves those out of
// what else has ended. It comes before the listing's changes, because the next holder may be among
// them. It reads the newest records, in one statement, because a forced release whose key was taken
// again since cannot be told from a hand-over by the rows alone.
func (p *Poller) tellForced(
	set []*reader, forced []lease.Forced, ended []lease.Event,
) (others []lease.Event) {
	for _, f := range slices.Backward(forced) {
		e := lease.Event{Kind: lease.EventForced, Key: f.Key, Token: f.Lease.Token}
		e.Identity, e.Note = lease.SplitNote(f.Note)
		for _, reader := range set {
			if !reader.fresh && reader.wants(f.Key) {
				reader.tell(e)
			}
		}
		ended = slices.DeleteFunc(ended, func(other lease.Event) bool {
			return other.Key == e.Key && other.Token == e.Token
		})
	}
	return ended
}

// newlyForced returns the records since the last call, latest first: none at the first call. A
// store without records has none, and so has a user without the right to read them.
func (p *Poller) newlyForced(ctx context.Context) []lease.Forced {
	forces, ok := seam.As[lease.ForceReleaser](p.Store)
	if !ok || p.forced.denied {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all, err := forces.ForceReleases(ctx, lease.ForcedFilter{Limit: mostForced})
	if err != nil {
		// Otherwise the next listing finds them. A server logs each statement that it denies.
		p.forced.denied = errors.Is(err, lease.ErrPrivilege)
		return nil
	}
	known := p.forced.newest
	p.forced.newest = make(map[lease.Owner]bool, len(all))
	for _, f := range all {
		p.forced.newest[f.ID] = true
	}
	if known == nil {
		return nil
	}
	return slices.DeleteFunc(all, func(f lease.Forced) bool { return known[f.ID] })
}
