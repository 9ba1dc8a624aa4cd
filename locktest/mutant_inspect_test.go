package locktest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// inspectBy replaces what a filter makes of all rows, in order.
func inspectBy(list func(all []lease.Record, f lease.Filter) []lease.Record) func(m *mutant) {
	return func(m *mutant) {
		m.inspect = func(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
			all, err := m.fencing.Inspect(ctx, lease.Filter{Limit: 1 << 20})
			if err != nil {
				return nil, err
			}
			rows := list(all, f)
			return rows[:min(len(rows), cmp.Or(f.Limit, 1000))], nil
		}
	}
}

func only(rows []lease.Record, wanted func(row lease.Record) bool) []lease.Record {
	return slices.DeleteFunc(rows, func(row lease.Record) bool { return !wanted(row) })
}

// rightly is what a right store selects.
func rightly(f lease.Filter) func(row lease.Record) bool {
	return func(row lease.Record) bool {
		return (len(f.Keys) == 0 || slices.Contains(f.Keys, row.Key)) && strings.HasPrefix(row.Key, f.Prefix) &&
			(f.After == "" || row.Key > f.After) && (row.Held || !f.Held)
	}
}

var inspectFlaws = []flaw{
	{"rows are listed without regard to case", inspectBy(func(all []lease.Record, f lease.Filter) []lease.Record {
		all = only(all, rightly(f))
		slices.SortFunc(all, func(a, b lease.Record) int {
			return strings.Compare(strings.ToLower(a.Key), strings.ToLower(b.Key))
		})
		return all
	}), []string{"rows are listed page by page in the byte order of their keys"}},
	{"a page begins with the last row of the one before", inspectBy(func(all []lease.Record, f lease.Filter) []lease.Record {
		after := f.After
		f.After = ""
		return only(only(all, rightly(f)), func(row lease.Record) bool { return row.Key >= after })
	}), []string{"rows are listed page by page in the byte order of their keys"}},
	{"a prefix is a LIKE pattern", inspectBy(func(all []lease.Record, f lease.Filter) []lease.Record {
		prefix := f.Prefix
		f.Prefix = ""
		return only(only(all, rightly(f)), func(row lease.Record) bool {
			for i := range len(prefix) {
				if i >= len(row.Key) || prefix[i] != '_' && prefix[i] != row.Key[i] {
					return false
				}
			}
			return true
		})
	}), []string{"a prefix is bytes, not a pattern"}},
	{"an owner is all it takes to be listed as held", inspectBy(func(all []lease.Record, f lease.Filter) []lease.Record {
		held := f.Held
		f.Held = false
		return only(only(all, rightly(f)), func(row lease.Record) bool { return !held || !row.Owner.IsZero() })
	}), []string{"only rows whose lease is alive are listed as held", "the parts of a filter narrow each other"}},
	{"keys are listed whatever else the filter says", inspectBy(func(all []lease.Record, f lease.Filter) []lease.Record {
		if len(f.Keys) > 0 {
			f = lease.Filter{Keys: f.Keys}
		}
		return only(all, rightly(f))
	}), []string{"the parts of a filter narrow each other"}},
	{"a page is cut before reader groups of the dead leave it", inspectBy(func(all []lease.Record, f lease.Filter) []lease.Record {
		held := f.Held
		f.Held = false
		rows := only(only(all, rightly(f)), func(row lease.Record) bool { return !held || row.Held || row.Shared })
		return only(rows[:min(len(rows), cmp.Or(f.Limit, 1000))], rightly(lease.Filter{Held: held}))
	}), []string{"a page of held keys is full though reader groups of the dead lie between them"}},
	{"a listing ends at no limit", func(m *mutant) {
		m.inspect = func(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
			f.Limit = cmp.Or(f.Limit, 1<<20)
			return m.fencing.Inspect(ctx, f)
		}
	}, []string{"a listing without a limit ends at 1000 rows"}},
	{"a renewal makes a row young", func(m *mutant) {
		var renewed sync.Map
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed { renewed.Store(q.Key, time.Now()); return m.extend(q) })
		m.inspect = func(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
			rows, err := m.fencing.Inspect(ctx, f)
			for i := range rows {
				if at, ok := renewed.Load(rows[i].Key); ok {
					rows[i].Age = time.Since(at.(time.Time))
				}
			}
			return rows, err
		}
	}, []string{"a row's age counts from the grant, not from a renewal"}},
}
