package locktest_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
	"github.com/rowlockdb/rowlock/memstore"
)

// The whole test of a store. This one is for memstore: put your own in its place.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestConformance(t *testing.T)
		locktest.Run(t, locktest.Harness{
			Open: func(testing.TB) lease.Store { return memstore.New() },
			Expire: func(_ testing.TB, s lease.Store, key string) {
				s.(*memstore.Store).Expire(key)
			},
		})
	}
	// Output:
}
