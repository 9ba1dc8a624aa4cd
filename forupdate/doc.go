// Package forupdate locks with SELECT … FOR UPDATE, in two ways.
//
// # In your own transaction
//
// A [Locker] locks keys, or rows of your own tables, in a transaction that is yours, until it ends. There is no lease, no token and
// nothing to renew, and the lock cannot outlive the transaction: for work that fits into one, this is the simplest lock there is.
//
// # A store whose lock is a transaction
//
// A [Store] is a lease.Store for rowlock.New. Who holds a key has its row in rowlock_hold locked FOR UPDATE by a transaction that stays
// open on a connection of its own. When that connection ends, because its process was killed or crashed or somebody ended the session,
// the server lets the key go at that moment: a lease would have to run out first. What the lock tells of itself (owner, note, the token,
// the expiry) stands in rowlock's own rows, so tokens grow and Fence works as with leases.
//
// What it costs: a connection for each held lock, and a transaction that stays open, which on Postgres keeps VACUUM from removing row
// versions that died since it took the lock's row, on MySQL the purge of the undo log. For locks that are held for long, or in great
// numbers, use leases (rowlock.Open).
//
// # What is guaranteed
//
// At most one transaction has a key's row, and tokens grow for ever: no clock is needed for either. A write under an older token is
// refused by Fence. What is weaker than with leases is how soon a holder knows: it can lose its connection, and with it the key, at
// any moment, and it is told by its next renewal (RenewEvery, a third of the TTL unless said otherwise, and 2 s at most for a connection
// that does not answer), or at its deadline where the whole database does not. In between another may hold the key. So fence what you
// write.
//
// A holder that says nothing is bounded by the server: it ends a session from which it has heard nothing for the TTL (on MySQL and
// MariaDB rounded up to whole seconds), and the row's expiry ends as a lease's does. So a process that is stopped, or a machine that
// vanishes without a word, keeps a key for its TTL and no longer.
//
// A key belongs to the kind of store that has made its row: a lease client refuses a key of forupdate's with lease.ErrMoved, and the
// reverse, until the row is swept. Keys of a [Locker] are not leases' keys: a Locker and a lease client know nothing of each other.
package forupdate
