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
// While the holder's own transaction has fenced the row, no other owner can take it, and no renewal can extend it. Renewals are
// then answered lease.Busy. The fence itself extends the lease within its transaction (lease.RenewingFencer). A Busy answer says
// what remains of the expiry that is committed; a fenced lease ([Dog.Fenced]) is trusted until sent + remaining − margin. So short
// transactions that leave no gap keep the lease alive, and one that rolls back is never relied on.
//
// If the committed expiry has passed, because one transaction outlasts the lease, a fenced lease that is still answered Busy lives
// on a margin at a time: its row cannot be taken. When the transaction has ended the next renewal says what became of the lease:
// extended, or lost because its expiry has passed. For at most a margin the holder of a lease that outlived its expiry in this way
// does not know, while another owner may have taken the key; its next fence is refused all the same.
package watchdog
