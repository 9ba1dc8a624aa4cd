// Package watchdog keeps held leases alive and tells their holders, in time, when it cannot.
//
// One goroutine and one heap of timers serve any number of leases; what is due renews together, up to [Config.Batch] leases
// in one statement. The goroutine never waits for the database: renewals run beside it, so that a lease's deadline passes on
// time whatever the network does.
//
// # The deadline
//
// A lease is trusted until sent + TTL − margin on this process's monotonic clock, where sent is the moment before the request
// that granted or last extended it went out. The store reads its own clock after that moment and adds the same TTL, so the
// holder stops first, by the margin, unless the store's clock jumps ahead or the two run at different speeds by more than
// margin/TTL. Counting from the reply instead would stretch the lease by however long the reply took.
//
// The store's clock is watched too: every renewal brings a reading of it. When it has run ahead of ours by more than half a
// margin since the last one, every deadline moves forward by as much.
//
// # Behind a fence
//
// While the holder's own transaction has fenced the row, nobody can take it, and nobody can renew it either. Renewals are then
// answered lease.Busy. A lease that was fenced ([Held.Fenced]) and is still answered Busy lives on past its deadline, a margin
// at a time. When the transaction has ended the next renewal says what became of it: extended, or lost because the store's
// expiry has passed meanwhile. For at most a margin the holder of a lease that outlived its expiry in this way may not yet
// know; its next fence is refused all the same.
package watchdog
