package quorum

import (
	"context"
	"fmt"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
	"github.com/rowlockdb/rowlock/memstore"
)

// memory is a harness over n stores in memory. Its hooks reach every member.
func memory(n int) locktest.Harness {
	var opened []*Store
	each := func(s lease.Store, do func(*memstore.Store)) {
		for _, s := range opened {
			s.calls.idle(context.Background())
		}
		for _, m := range s.(*Store).members {
			do(m.store.(*memstore.Store))
		}
	}
	open := func(tb testing.TB, stores []lease.Store) lease.Store {
		s, err := New(stores...)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = s.Close() })
		opened = append(opened, s)
		return s
	}
	return locktest.Harness{
		Steady: true,
		Open: func(tb testing.TB) lease.Store {
			opened = nil
			stores := make([]lease.Store, n)
			for i := range stores {
				stores[i] = memstore.New()
			}
			return open(tb, stores)
		},
		Another: func(tb testing.TB, s lease.Store) lease.Store {
			var stores []lease.Store
			for _, m := range s.(*Store).members {
				stores = append(stores, m.store)
			}
			return open(tb, stores)
		},
		Expire: func(_ testing.TB, s lease.Store, key string) {
			each(s, func(m *memstore.Store) { m.Expire(key) })
		},
		SetToken: func(_ testing.TB, s lease.Store, key string, token lease.Token) {
			each(s, func(m *memstore.Store) { m.SetToken(key, token) })
		},
	}
}

func TestConformance(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n, " in memory"), func(t *testing.T) { locktest.Run(t, memory(n)) })
	}
}

func TestRandomCalls(t *testing.T) { locktest.RunRandom(t, memory(3), 0) }
