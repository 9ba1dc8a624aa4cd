// Package wlock is a client of the lock service WLock (wuba/WLock), and a [lease.Store] over it:
//
//	registry := []string{"registry:22020"}
//	store, err := wlock.Open(ctx, wlock.Config{Registry: registry, Cluster: "default_key"})
//	…
//	client, err := rowlock.New(store, nil)
//	…
//	l, err := client.Lock(ctx, "order:1001")
//
// The keys, the groups that they are in and the wait queue are those of Java clients, so that both
// exclude each other on one cluster.
//
// # What is guaranteed
//
//   - Two holders are told of one key only if clocks of servers differ by more than Config.Skew, if
//     the cluster loses what it has acknowledged, or if a client extends a lock by RENEW, as those
//     in Java do.
//   - Tokens of a key grow, while the cluster keeps its groups and its data.
//   - A grant is told only in answer to a request of the caller's own, and if that names its owner.
//     One whose caller has left is released, unless its owner holds the key by then.
//
// A WLock cluster can be made to give one key to two holders, and neither learns of it: check
// Lock.Token where the data is, with package tokenfence. Lock.Fence and DoTx cannot help, because
// the lock is not in your database.
//
// # How a lease is extended
//
// [Store] extends a lease by acquiring it again with the same owner, and never by RENEW. That keeps
// the token and the expiry apart: a server that was paused deletes a lock that was renewed, because
// the token is the one that it knew, and gives it to another owner. On a running cluster 14 of 30
// renewed locks were taken so, and a late RENEW brought back 14 of 30 that had been released. Of
// 160 that were acquired again none was lost. Each extension changes the token at the servers.
// Holders see the first one, which orders owners just as well.
//
// An extension counts only if its answer comes while the lease lasts by the holder's own clock. One
// that comes later may have taken anew what was lost, so that it is released.
//
// # What is not
//
//   - What servers say of other holders is what one of them knows, and may be of the past: that a
//     key is held or free, and by whom. It decides when to ask again, and nothing else.
//   - Nothing is kept beside a lock: no note, no fair queue of [lease.Queue], no limits, no readers
//     through rowlock. Read-write locks and the servers' own queue with its weights are those of
//     [Client.TryLock] and [Client.WaitLock].
//   - A server counts no re-entrance, and one release frees a lock that was acquired twice; Java
//     clients count themselves. rowlock.Reentrant does the same.
//   - There is no authentication and no encryption: use it on a trusted network.
//
// It is tested with a double of a cluster, whose frames and answers are those of a real one as of
// August 2023. ROWLOCK_TEST_WLOCK=registry:22020 has the tests of the protocol run on a cluster.
//
// A group whose master has died has none for about 11 s. Calls wait for that, up to
// Config.Patience; waiters see one pause.
package wlock
