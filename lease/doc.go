// Package lease has rowlock's vocabulary: what a lease is, what a [Store] must do with one, and the
// errors of both sides. It imports the standard library only, so that a store needs nothing else of
// rowlock.
//
// # Words
//
//   - A key names what is locked. It is bytes; [CheckKey] has the rules.
//   - A lease is one term of ownership of a key: an owner, a token and an expiry. A table keeps it
//     as a row, which stays after the lease has ended.
//   - An [Owner] is 128 random bits that name one attempt to acquire. The holder of a key is the
//     owner whose lease has not expired. A key without a holder is free.
//   - The token, or fencing token, is a number that grows with each grant of a key, forever. A
//     system that remembers the largest token it has seen can refuse an older holder.
//   - The TTL is how long a lease lasts unless it is renewed. The store's clock judges its expiry.
//   - A waiter is a caller that waits for a key. A process is one client with all its callers.
//   - To fence is to check a lease inside the caller's own transaction, and to keep the key from
//     being taken until that transaction ends.
//   - To release is to end one's lease; to take over is to acquire a key whose lease has expired;
//     to hand over is to grant a key to the next owner in the change that ends the last lease.
//   - To sweep is to remove the rows of dead leases: released ones, and expired ones. A floor, the
//     lower bound of new tokens in a bucket of keys, keeps tokens growing over a sweep: a key whose
//     row is gone begins above the floor of its [Bucket].
//   - A reader group is the readers that share a key; see [Sharer]. A [Caller] is the
//     calls that share a context and the locks that it carries.
//   - The [Record.Placement] of a key is where it is locked: in its row, in an open transaction,
//     or in a cluster. An epoch is a period in which a key has one placement. Tokens begin with
//     their epoch.
//   - A history is what one server has committed from one start to the next. A server that was
//     restarted, promoted or restored has another, which may lack the last grants. An era is a
//     range of tokens above all that were granted before; each new history begins one.
//   - A ticket is a waiter's position in the queue of a fair client. The head of the queue is the
//     first live ticket.
//   - A registration says that a process waits for a key, so that a release notifies it. A
//     notification only reduces latency: it may be lost, late, repeated or wrong.
//   - The outcome of a request is unknown if it was sent and no answer came. An orphan is a lease
//     that such a request may have left.
//
// # The contract of a Store
//
//   - A key has at most one owner at any instant. Every change is one atomic conditional step on
//     that key.
//   - Tokens granted for a key strictly increase forever: across release, expiry, takeover,
//     sweeping and re-creation. A store whose database can forget commits says whether that holds
//     across such a loss; that of rowlock.OpenTable begins an era.
//   - Acquire is idempotent per owner. A repeated request returns the same lease, never a second
//     grant and never "held by yourself". That makes a lost reply harmless (compare ZOOKEEPER-1262,
//     2011).
//   - "Granted" rests on an acknowledged commit, never on a read alone.
//   - Renew never inserts, never steals and never revives. An expired lease is dead even if its key
//     was not taken since.
//   - A release of a lease that is gone is no error; the answer says so.
//   - An error after the request may have been sent means that the outcome is unknown
//     ([ErrUnknown]). A read of the row does not resolve it, because a commit can be visible before
//     it is durable. A repeated request does: it is answered "granted" only after an acknowledged
//     commit.
//
// Optional abilities are small interfaces of their own, for example [Fencer], [TxReleaser] and
// [Sweeper]. A client looks for each once, by type assertion.
package lease
