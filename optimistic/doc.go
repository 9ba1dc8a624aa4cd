// Package optimistic locks without row locks: it reads a row, and changes it only if it is still as
// it was read.
//
// [New] makes a lease.Store of that kind, for databases and roles without FOR UPDATE, FOR SHARE,
// SKIP LOCKED or NOWAIT. It works on the same rows as rowlock.Open and gives the same guarantees,
// beside it and by itself. rowlock.New makes a client of it, which cannot be Fair, because the
// queue needs row locks.
//
// [NewTable] is the same idea on a table of your own that has a version column. [Table.Update]
// changes a row that is still as it was read, or returns a [ConflictError]. [Table.Modify] and
// [Retry] try again for you.
package optimistic
