// Package paxosbridge moves hot keys from the table to a consensus cluster while everything runs,
// and back when they have cooled. Code without DoTx does not change: a [Bridge] is a lease.Store
// for rowlock.New.
//
//	table, err := rowlock.OpenTable(db, postgres.New(), nil)
//	cluster, err := etcd.New(ctx, client)
//	bridge, err := paxosbridge.New(ctx, table, cluster, nil)
//	locks, err := rowlock.New(bridge, nil)
//
// A database commits once for each hand-over of a key, and a few hot keys can take most of its
// commits. A bridge counts the requests for each key ([Heat].Hot), moves hot keys out, and moves
// them back when requests for them become rare. [Bridge.MoveOut] and [Bridge.MoveBack] move a key
// by hand. [Config].Pin fixes where a key is locked.
//
// # The protocol
//
// The row in the table is the authority on where a key is: its placement and its
// epoch. The cluster has a record of each key that was ever there: an epoch, open or sealed.
//
//   - Out: the mover acquires the lock as any client does, and checks that the cluster answers. It
//     changes the row, if that still names the mover as the holder: the placement is the cluster,
//     and a new epoch begins. Then it opens that epoch in the cluster.
//   - Back: the mover acquires the lock in the cluster, and seals the epoch if it still holds the
//     key. Then it changes the row, if that is still in this epoch: the placement is the table,
//     and a new epoch begins.
//   - A process that finds a move half done completes it. The second step of each needs no lock,
//     only the knowledge that the first was made. It may be made late, twice, or by several
//     processes.
//
// Each statement to the table names the placement it is for, and each request to the cluster names
// the epoch. So a store refuses a request that is based on an old placement, even one that is a
// week old, and what a process remembers needs no expiry. Tokens are epoch<<40 plus a counter, and
// grow across every move.
//
// # Guarantees
//
// One owner per key and growing tokens hold across moves without any clock, as they do in the
// table, if the database forgets no acknowledged commit:
//
//   - An epoch is opened in the cluster only after the row has said that the key has left.
//   - A row takes a key back only after its epoch was sealed, which is final.
//   - A new epoch is above every epoch before it.
//
// Fence works for keys that have moved: it checks the epoch in the row, and leaves the token there.
//
// # Not guaranteed
//
// A key in a cluster that is down cannot be locked, and does not return to the table by itself.
// [Bridge.State] shows it, calls fail in bounded time, and [Bridge.ForceReturn] takes keys back if
// [Config].Delegation allows it.
//
// A database that forgets acknowledged commits forgets moves too, for example in a failover to a
// replica that lagged. An audit finds and repairs that ([Bridge.Audit]). Until then both stores may
// grant the key. A table that begins an era after each start of its server grants nothing through a
// bridge before an audit, and calls get [lease.ErrBusy] while the cluster cannot be read. That
// leaves clients that use the table without a bridge, a move whose second step is made after the
// audit, and a ForceReturn that is forgotten: the cluster then grants below the table's tokens. So
// replicate synchronously (rowlock.Config.RequireSync).
//
// A key in the table moves out only when each epoch in which it may return is over by the
// database's clock. An era that begins after a failover is then above every token that the table
// had granted. A key that returned or was granted in an epoch of the last 20 minutes waits, and so
// does each key of a SQLite file for as long after it was opened: [Bridge.MoveOut] returns
// [lease.ErrBusy].
//
// UnlockTx does not work for a key in the cluster: pin such keys to the table. LockAll of keys that
// are not all in the table asks for each, and releases a part: other callers may for a moment find
// a key held that its asker does not keep. Fair, shared locks and semaphores are refused.
package paxosbridge
