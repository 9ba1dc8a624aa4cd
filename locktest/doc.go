// Package locktest is the conformance suite of [lease.Store]: what a store must do, said in
// sentences and proved by calls.
//
// A store's own test only says how to open the store:
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, locktest.Harness{
//			Open:   func(tb testing.TB) lease.Store { … }, // without rows
//			Expire: func(tb testing.TB, s lease.Store, key string) { … }, // sets expires_at to the past
//		})
//	}
//
// Every property is a subtest, named for what it proves, so that
//
//	go test -run 'TestConformance/renew'
//
// runs one topic. The suite looks for a store's optional abilities ([lease.Fencer],
// [lease.TxReleaser], [lease.Sweeper], …) by type assertion, and for abilities of the test in the
// optional fields of [Harness]. It skips what is missing and says so.
//
// [RunRandom] goes on where the sentences end: random sequences of calls against a model of the
// lock.
//
// No property waits for time to pass if a hook can end a lease instead, and every wait is bounded.
// A property can miss a fault that needs an unlucky moment. It never reports a fault that is not
// there.
package locktest
