// Package memstore is a store that keeps its rows in memory: it lets a test use real locks
// without a database.
//
//	store := memstore.New()
//	locks, err := rowlock.New(store, nil)
//
// Clients on one Store see the locks of each other, as processes on one database do. Give two
// clients one Store to test what happens between two processes.
//
// # What it guarantees
//
// A Store passes locktest, the suite that every store of rowlock passes. Exclusion, tokens that
// only grow, expiry, waiting, fair order, batches and sweeping are therefore as they are in a
// database.
//
// Its clock is time.Now. In a bubble of testing/synctest a lease expires when the bubble's clock
// says so: a test of a TTL of thirty seconds takes no time at all.
//
// [Store.Expire] ends a lease early, so that a test can see what its program does when a lock is
// lost. [Store.DropHints] loses notifications, so that a test can see that its program needs none.
//
// # What it does not do
//
//   - It serves one process. Another process has another Store.
//   - It keeps nothing. A new Store has no rows, and its tokens begin again: it is for tests, not
//     for production.
//   - It has no replicas: rowlock.New refuses Config.RequireSync with rowlock.ErrUnsupported.
//   - It has no transactions. Lock.Fence and Lock.UnlockTx return rowlock.ErrUnsupported. Test
//     code that fences on SQLite in a temporary folder (see the examples of package rowlock).
//   - It never fails. A call returns an error only if its context has ended or a request is
//     malformed.
//
// # The name
//
// The package is no leasetest beside locktest, because it tests nothing: it is a store. It imports
// neither package testing nor a driver, so that a demonstration or a fake server can use it too.
package memstore
