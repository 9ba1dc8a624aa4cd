package locktest

import (
	"context"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

func (m *mutant) ForceRelease(ctx context.Context, q lease.ForceRequest) (lease.Forced, error) {
	return m.forceRelease(ctx, q)
}

func (m *mutant) ForceReleases(ctx context.Context, f lease.ForcedFilter) ([]lease.Forced, error) {
	return m.forceReleases(ctx, f)
}

// forcedAs does what change makes of a request.
func forcedAs(change func(q *lease.ForceRequest)) func(m *mutant) {
	return func(m *mutant) {
		m.forceRelease = func(ctx context.Context, q lease.ForceRequest) (lease.Forced, error) {
			change(&q)
			return m.fencing.ForceRelease(ctx, q)
		}
	}
}

// afterForce runs undo after each that succeeds.
func afterForce(undo func(m *mutant, f lease.Forced)) func(m *mutant) {
	return func(m *mutant) {
		m.forceRelease = func(ctx context.Context, q lease.ForceRequest) (lease.Forced, error) {
			f, err := m.fencing.ForceRelease(ctx, q)
			if err == nil {
				undo(m, f)
			}
			return f, err
		}
	}
}

// listedAs lists what change makes of the filter.
func listedAs(change func(f *lease.ForcedFilter)) func(m *mutant) {
	return func(m *mutant) {
		m.forceReleases = func(ctx context.Context, f lease.ForcedFilter) ([]lease.Forced, error) {
			change(&f)
			return m.fencing.ForceReleases(ctx, f)
		}
	}
}

const (
	eachHasItsRecord = "each forced release has its record"
	recordsInPages   = "pages of records leave none out, and repeat none"
)

var forceFlaws = []flaw{
	{"a forced release leaves the token", afterForce(func(m *mutant, f lease.Forced) {
		m.SetToken(f.Key, f.Lease.Token)
	}), []string{
		"a forced release frees the key, and raises its token",
		"of forced releases of one lease at once, one succeeds",
	}},
	{"a forced release only raises the token", afterForce(func(m *mutant, f lease.Forced) {
		m.force(lease.AcquireRequest{Key: f.Key, Owner: f.Lease.Owner, TTL: ttl}, f.Raised)
	}), []string{
		"a forced release frees the key, and raises its token",
		"the holder from whom a key was taken is refused",
		"an expired lease is taken too, and its fence is refused",
	}},
	{"a forced release only keeps a record", afterForce(func(m *mutant, f lease.Forced) {
		m.force(lease.AcquireRequest{Key: f.Key, Owner: f.Lease.Owner, TTL: ttl}, f.Lease.Token)
	}), []string{
		"the holder from whom a key was taken is refused",
		"an expired lease is taken too, and its fence is refused",
		"a forced release waits for the holder's fence",
	}},
	{"a reader group that was ended by force lets its members go on", func(m *mutant) {
		var members []lease.AcquireRequest
		m.share = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			members = append(members, reqs...)
			return m.fencing.Share(ctx, reqs)
		}
		m.renew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			for _, q := range members {
				if len(reqs) == 1 && reqs[0].Owner == q.Owner {
					return []lease.Renewed{{Outcome: lease.Extended}}, nil
				}
			}
			return m.fencing.Renew(ctx, reqs)
		}
	}, []string{"every member of a shared key loses it"}},
	{"a forced release ignores the holder's fence", func(m *mutant) {
		m.forceRelease = func(ctx context.Context, q lease.ForceRequest) (lease.Forced, error) {
			return m.Store.ForceRelease(ctx, q)
		}
	}, []string{"a forced release waits for the holder's fence"}},
	{"a repeated forced release is another", forcedAs(func(q *lease.ForceRequest) {
		q.ID = lease.NewOwner()
	}), []string{"a repeated forced release answers as the first"}},
	{"a forced release ignores the token", forcedAs(func(q *lease.ForceRequest) {
		q.Token = 0
	}), []string{"a forced release that names another token changes nothing"}},
	{"a free key is taken and given back", func(m *mutant) {
		m.forceRelease = func(ctx context.Context, q lease.ForceRequest) (lease.Forced, error) {
			if row, _ := m.row(q.Key); q.Check() == nil && row.Owner.IsZero() {
				m.force(lease.AcquireRequest{Key: q.Key, Owner: lease.NewOwner(), TTL: ttl}, row.Token+1)
			}
			return m.fencing.ForceRelease(ctx, q)
		}
	}, []string{
		"a free key is not taken, and leaves no record",
		"of forced releases of one lease at once, one succeeds",
	}},
	{"records have no note", func(m *mutant) {
		m.forceRelease = func(ctx context.Context, q lease.ForceRequest) (lease.Forced, error) {
			f, err := m.fencing.ForceRelease(ctx, q)
			f.Note = ""
			return f, err
		}
	}, []string{eachHasItsRecord}},
	{
		"records are of every key", listedAs(func(f *lease.ForcedFilter) { f.Key = "" }),
		[]string{eachHasItsRecord},
	},
	{
		"records are of every prefix", listedAs(func(f *lease.ForcedFilter) { f.Prefix = "" }),
		[]string{eachHasItsRecord},
	},
	{
		"records are of every time", listedAs(func(f *lease.ForcedFilter) { f.Before = time.Time{} }),
		[]string{eachHasItsRecord},
	},
	{
		"every page of records is the first", listedAs(func(f *lease.ForcedFilter) { f.Last = lease.Forced{} }),
		[]string{recordsInPages},
	},
	{"a page of records leaves out those of one time", listedAs(func(f *lease.ForcedFilter) {
		f.Last = lease.Forced{At: f.Last.At.Truncate(24 * time.Hour)} // of a clock that counts days
	}), []string{recordsInPages}},
	{
		"records are listed whatever the limit", listedAs(func(f *lease.ForcedFilter) { f.Limit = 0 }),
		[]string{eachHasItsRecord},
	},
	{"records are listed as they came", func(m *mutant) {
		m.forceReleases = func(ctx context.Context, f lease.ForcedFilter) ([]lease.Forced, error) {
			all, err := m.fencing.ForceReleases(ctx, f)
			slices.Reverse(all)
			return all, err
		}
	}, []string{eachHasItsRecord, "of a key, the latest forced release is listed first"}},
	{"a forced release needs no reason", forcedAs(func(q *lease.ForceRequest) {
		q.Reason, q.By = "none", "none"
	}), []string{"a forced release without operator, reason or ID is refused"}},
}
