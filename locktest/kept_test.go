package locktest

import (
	"context"
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// slowly is a store with calls that run on, in a diary of what is done to it.
type slowly struct {
	*memstore.Store
	diary *[]string
	name  string
}

func (s slowly) Settle(context.Context) { *s.diary = append(*s.diary, "settle "+s.name) }

func TestKeptStoresServeUntilAPropertyFails(t *testing.T) {
	var diary []string
	named := func(name string) slowly {
		diary = append(diary, "open "+name)
		return slowly{memstore.New(), &diary, name}
	}
	h := Harness{
		Open:    func(testing.TB) lease.Store { return named("here") },
		Another: func(testing.TB, lease.Store) lease.Store { return named("there") },
		Empty: func(_ testing.TB, s lease.Store) {
			diary = append(diary, "empty "+s.(slowly).name)
		},
	}.kept(t)
	use := func(tb testing.TB) lease.Store { return h.Another(tb, h.Open(tb)) }
	for range 2 {
		record(t, func(tb testing.TB) { use(tb) })
	}
	record(t, func(tb testing.TB) { use(tb); tb.Fail() })
	record(t, func(tb testing.TB) { use(tb) })
	again := []string{"settle here", "settle there", "empty here"}
	fresh := []string{"open here", "open there"}
	if want := slices.Concat(fresh, again, again, fresh); !slices.Equal(diary, want) {
		t.Errorf("it did\n%q, want\n%q", diary, want)
	}
}
