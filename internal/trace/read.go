package trace

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// mostEvents is how many events a filter without a Limit lists.
const mostEvents = 1000

// Read lists events, latest first: those that the trace has, the forced releases of which there are
// records, and how many events are missing. forces may be nil. Tables without a trace have the
// records all the same.
func Read(
	ctx context.Context, store lease.Tracer, forces lease.ForceReleaser, f lease.TraceFilter,
) ([]lease.TraceEvent, error) {
	f.Limit = cmp.Or(max(f.Limit, 0), mostEvents)
	all, err := store.ReadTrace(ctx, f)
	none := forces != nil && errors.Is(err, lease.ErrNoSchema)
	if none {
		err = nil
	}
	if err == nil && !none && (f.Key != "" || f.Prefix != "") {
		var others []lease.TraceEvent
		others, err = store.ReadTrace(ctx, lease.TraceFilter{NoKey: true, Before: f.Before, Limit: f.Limit})
		all = append(all, others...)
	}
	if err == nil && forces != nil {
		var records []lease.TraceEvent
		records, err = forcedBefore(ctx, forces, f)
		all = append(all, records...)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, latestFirst)
	return all[:min(len(all), f.Limit)], nil
}

func latestFirst(a, b lease.TraceEvent) int {
	return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.ID, a.ID))
}

// unit is the longest unit in which a store keeps times.
const unit = time.Millisecond

// forcedBefore lists the records of a page. Several may be of one time, so it asks from the unit of
// the page before, and for more if too many of them are on that page.
func forcedBefore(
	ctx context.Context, forces lease.ForceReleaser, f lease.TraceFilter,
) ([]lease.TraceEvent, error) {
	o := lease.ForcedFilter{Key: f.Key, Prefix: f.Prefix, Limit: f.Limit}
	if !f.Before.At.IsZero() {
		o.Before = f.Before.At.Add(unit)
	}
	for ; ; o.Limit *= 2 {
		records, err := forces.ForceReleases(ctx, o)
		if err != nil {
			return nil, err
		}
		page := slices.DeleteFunc(forcedEvents(records), func(e lease.TraceEvent) bool {
			return !f.Before.At.IsZero() && latestFirst(e, f.Before) <= 0
		})
		if len(page) >= f.Limit || len(records) < o.Limit {
			return page, nil
		}
	}
}

// forcedEvents are records as events, which come after what else has their time. Those of one time
// have numbers in the order of their listing, by which a page can end between them.
func forcedEvents(records []lease.Forced) []lease.TraceEvent {
	all := make([]lease.TraceEvent, len(records))
	for i, one := range records {
		all[i] = forced(one)
		if all[i].ID = math.MaxInt64; i > 0 && all[i-1].At.Equal(one.At) {
			all[i].ID = all[i-1].ID - 1
		}
	}
	return all
}

func forced(f lease.Forced) lease.TraceEvent {
	e := lease.TraceEvent{
		Kind: lease.EventForced, Key: f.Key, At: f.At, Token: f.Lease.Token,
		Owner: f.Lease.Owner, Detail: f.By + ": " + f.Reason,
	}
	if f.Session != "" { // the database's own word for who took it
		e.Detail = f.By + " (database user " + f.Session + "): " + f.Reason
	}
	e.Identity, e.Note = lease.SplitNote(f.Note)
	return e
}
