package observe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// page is how many rows one statement lists.
	page = 1000
	// mostListings is how many prefixes are listed one by one. With more, all keys are.
	mostListings = 16
	// patience bounds one statement.
	patience = 5 * time.Second
)

// cover returns the fewest prefixes with which the prefixes of all readers begin.
func cover(set []*reader) (prefixes []string) {
	all := make([]string, len(set))
	for i, r := range set {
		all[i] = r.prefix
	}
	slices.Sort(all)
	for _, next := range all {
		if n := len(prefixes); n == 0 || !strings.HasPrefix(next, prefixes[n-1]) {
			prefixes = append(prefixes, next)
		}
	}
	return prefixes
}

// covers reports whether a reader wants key: only the last prefix that is not after it can fit,
// because none of them begins with another.
func covers(prefixes []string, key string) bool {
	i, found := slices.BinarySearch(prefixes, key)
	return found || i > 0 && strings.HasPrefix(key, prefixes[i-1])
}

// listing is what the rows of one round say.
type listing struct {
	held map[string]lease.Record
	bad  map[string]error // rows that cannot be read
}

// list returns the keys that are held, by pages.
func (p *Poller) list(ctx context.Context, prefixes []string) (listing, error) {
	now := listing{make(map[string]lease.Record), make(map[string]error)}
	listed := prefixes
	if len(prefixes) > mostListings {
		listed = []string{""}
	}
	for _, prefix := range listed {
		f := lease.Filter{Prefix: prefix, Held: true, Limit: page}
		for more := true; more; {
			rows, err := p.inspect(ctx, f)
			if err != nil {
				return now, err
			}
			for _, r := range rows {
				f.After = r.Key
				switch {
				case !covers(prefixes, r.Key):
				case r.Err != nil:
					p.keep(now, r)
				default:
					now.held[r.Key] = r
				}
			}
			more = len(rows) == page
		}
	}
	return now, nil
}

// keep lists a key whose row cannot be read as it was: nothing else is told of it until it can be.
func (p *Poller) keep(now listing, bad lease.Record) {
	now.bad[bad.Key] = bad.Err
	if was, held := p.last.held[bad.Key]; held {
		was.Err = bad.Err
		now.held[bad.Key] = was
	}
}

// endings says how each key has ended that was held and is held no more. A key that is held after
// all is added to the listing: it changed hands while the pages were read.
func (p *Poller) endings(ctx context.Context, now listing, prefixes []string) (ended []lease.Event, err error) {
	var gone []string
	for key := range p.last.held {
		if _, held := now.held[key]; !held && covers(prefixes, key) {
			gone = append(gone, key)
		}
	}
	for keys := range slices.Chunk(gone, page) {
		rows, err := p.inspect(ctx, lease.Filter{Keys: keys, Limit: page})
		if err != nil {
			return nil, err
		}
		left := make(map[string]lease.Record, len(rows))
		for _, r := range rows {
			left[r.Key] = r
		}
		for _, key := range keys {
			if r, there := left[key]; there && r.Err != nil {
				p.keep(now, r)
			} else if there && r.Held {
				now.held[key] = r
			} else {
				ended = append(ended, ending(p.last.held[key], r, there))
			}
		}
	}
	return ended, nil
}

// ending is how a lease has ended. A row that was removed meanwhile had been released, for one that
// has expired stays for longer than the time between two listings.
func ending(was, now lease.Record, there bool) lease.Event {
	kind := lease.EventReleased
	switch {
	case there && now.Placement != was.Placement:
		kind = lease.EventMoved
	case there && now.Token == was.Token && !now.Owner.IsZero():
		kind = lease.EventExpired
		if lease.Lapses(now.Note) {
			kind = lease.EventLapsed
		}
	}
	was.Held = false
	return eventOf(kind, &was)
}

func (p *Poller) inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.Store.Inspect(ctx, f)
}

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
// store without records has none, and so has a user without the right to read them. A record whose
// lease the listing still has came after it: the next call returns it, with the end of that lease.
func (p *Poller) newlyForced(ctx context.Context, now listing) []lease.Forced {
	forces, ok := adapter.As[lease.ForceReleaser](p.Store)
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
	return slices.DeleteFunc(all, func(f lease.Forced) bool {
		if r, held := now.held[f.Key]; held && r.Token == f.Lease.Token {
			return true
		}
		p.forced.newest[f.ID] = true
		return known == nil || known[f.ID]
	})
}
