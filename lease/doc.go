// Package lease is rowlock's vocabulary and its seam: what a lease is, what a [Store] must do with one, and the errors
// both sides speak. It imports the standard library only, so that a store can be written without taking anything else of
// rowlock along.
//
// A lease is a row: a key, the 128 random bits of the attempt that got it ([Owner]), a fencing token that grows for ever,
// and an expiry judged by the store's own clock. A [Store] decides who owns; it never waits and never guesses.
//
// # The contract of a Store
//
//   - At most one owner per key at any instant. Every change is one atomic conditional step on that key.
//   - Tokens granted for a key strictly increase for ever: across release, expiry, takeover, sweeping and re-creation.
//   - Acquire is idempotent per owner: repeating a request returns the same lease, never a second grant and never "held by
//     yourself". That is what makes a lost reply harmless (ZooKeeper met this in 2011, ZOOKEEPER-1262).
//   - "Granted" rests on a commit that was acknowledged, never on a read alone.
//   - Renew never inserts, never steals and never revives: a lease whose expiry has passed is dead even if nobody took it.
//   - Release of what is gone is no error; the answer says so.
//   - An error after the request may have been sent means the outcome is unknown ([ErrUnknown]). Reading the row does not resolve it,
//     because a commit can be visible before it is durable. Repeating the request does: the answer "granted" is given after a commit
//     that was acknowledged.
//
// Optional abilities are small interfaces of their own ([Fencer], [TxReleaser], [Sweeper]) that a client looks for
// once, by type assertion.
package lease
