// Package watchdog renews held leases, and ends a lease in time if it can no longer be trusted.
//
// One goroutine and one heap of timers serve any number of leases. Leases that are due are renewed
// together, up to [Config.Batch] in one statement. The goroutine never waits for the database,
// because renewals run beside it: a lease ends on time whatever the network does.
//
// # The deadline
//
// A lease is trusted until sent + TTL − margin on this process's monotonic clock. sent is the
// moment before the request went out that granted or last extended the lease. The store reads its
// own clock after that moment and adds the same TTL. So the holder stops first, by the margin,
// unless the store's clock jumps ahead or the clock rates differ by more than margin/TTL. A
// deadline that counted from the reply would be late by as long as the reply took.
//
// A lease with a limit ([Held].Until, [Watchdog.MaxIdle]) ends at that limit, if it is the earlier
// moment.
//
// Every renewal also brings a reading of the store's clock. If that clock has run ahead of ours by
// more than half a margin since a lease was extended, its deadline comes earlier by as much.
//
// # Behind a fence
//
// While the holder's own transaction has fenced the row, no other owner can take it, and no renewal
// can extend it. Renewals are then answered lease.Busy. The fence itself extends the lease within
// its transaction (lease.RenewingFencer). A Busy answer has the remaining time of the committed
// expiry; a fenced lease ([Watchdog.Fenced]) is trusted until sent + remaining − margin. So short
// transactions that leave no gap keep the lease alive, and a transaction that rolls back is never
// relied on.
//
// If one transaction outlasts the lease, the committed expiry passes. A fenced lease that is still
// answered Busy then lives on by a margin at a time, because its row cannot be taken. After the
// transaction the next renewal extends the lease, or reports it lost because its expiry has passed.
// For at most a margin the holder of such a lease does not know that another owner may have taken
// the key; its next fence is refused all the same.
package watchdog
