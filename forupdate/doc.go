// Package forupdate locks with SELECT … FOR UPDATE, in two ways.
//
// # In your own transaction
//
// A [Locker] locks keys, or rows of your own tables, in a transaction of yours until it ends. It
// has no lease and no token, renews nothing, and the lock cannot outlive the transaction. For work
// that fits into one transaction it is the simplest lock.
//
// # A store whose lock is a transaction
//
// A [Store] is a lease.Store for rowlock.New. The holder of a key has the key's row in rowlock_hold
// locked FOR UPDATE, by a transaction that stays open on a connection of its own. If that
// connection ends, because its process crashed or was killed or an operator ended the session, the
// server unlocks the row at that moment. A lease would have to expire first. Owner, note, token and
// expiry of the lock stand in rowlock's own rows, so that tokens grow and Fence works as with
// leases.
//
// Its price is a connection for each held lock, and a transaction that stays open. On PostgreSQL
// such a transaction keeps VACUUM from removing row versions that died since it took the lock's
// row; on MySQL it delays the purge of the undo log. For locks that are held for long, or in great
// numbers, use leases (rowlock.Open).
//
// # What is guaranteed
//
// At most one transaction has a key's row, and tokens grow forever; neither needs a clock. Fence
// refuses a write under an older token. A holder learns later of a loss than with leases: it can
// lose its connection, and with it the key, at any moment. It learns of that with its next renewal
// (RenewEvery, a third of the TTL by default, and 2 s at most for a connection that does not
// answer), or at its deadline if the whole database does not answer. Meanwhile another caller may
// hold the key. So fence what you write.
//
// The server bounds a silent holder: it ends a session whose idle time has reached the TTL (rounded
// up to whole seconds on MySQL and MariaDB), and the row expires as a lease does. So a process that
// is stopped, or a machine that vanishes, keeps a key for its TTL and no longer.
//
// A key belongs to the kind of store that has made its row: until the row is swept, a lease client
// refuses a key of forupdate's with lease.ErrMoved, and the reverse. Keys of a [Locker] are not
// keys of leases: a Locker and a lease client know nothing of each other.
package forupdate
