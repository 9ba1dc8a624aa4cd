// Package locktest is the conformance suite of [lease.Store]: what a store must do, said in sentences and proved by calls.
//
// A store's own test describes how to get hold of the store, and that is all:
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, locktest.Harness{
//			Open:   func(tb testing.TB) lease.Store { … },             // over no rows
//			Expire: func(tb testing.TB, s lease.Store, key string) { … }, // UPDATE … SET expires_at = <the past>
//		})
//	}
//
// Every property is a subtest of its own, named for what it proves, so that
//
//	go test -run 'TestConformance/renew'
//
// runs one topic. Abilities a store may have or not ([lease.Fencer], [lease.TxReleaser], [lease.Sweeper]) are asked of the
// store by type assertion, and abilities of the test by the optional fields of [Harness]. What is missing skips and says so.
//
// [RunRandom] goes on where the sentences end: random sequences of calls against a model of the lock.
//
// No property waits for time to pass where a hook can end a lease instead, and every wait is bounded. A property may
// miss a fault that needs an unlucky moment; it does not report one that is not there.
package locktest
