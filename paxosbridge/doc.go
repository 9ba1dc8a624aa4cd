// Package paxosbridge moves hot keys from the table to a consensus cluster while everything runs, and back when they have cooled.
// The application's code does not change: a [Bridge] is a lease.Store for rowlock.New.
//
//	table, err := rowlock.OpenTable(db, postgres.New(), nil)
//	cluster, err := etcd.New(ctx, client)
//	bridge, err := paxosbridge.New(ctx, table, cluster, nil)
//	locks, err := rowlock.New(bridge, nil)
//
// A database commits once for each hand-over of a key, however hot it is, and a few keys can take most of its commits. A bridge counts what
// is asked for ([Config].Hot), moves such keys out, and brings them home when nobody asks for them any more. [Bridge.MoveOut] and
// [Bridge.MoveBack] do it by hand, [Config].Pin decides for good.
//
// # The protocol
//
// The row in the table is the authority on where a key is: home and epoch. The cluster has a record of each key that was ever there:
// an epoch, open or sealed.
//
//   - Out: the mover gets the lock as everybody does. It sees that the cluster answers. It changes the row, if that still names it as the
//     holder: home is the cluster, and a new epoch begins. Then it opens that epoch in the cluster.
//   - Back: the mover gets the lock in the cluster. It seals the epoch, if it still holds the key. Then it changes the row, if that is
//     still in this epoch: home is the table, and a new epoch begins.
//   - Whoever finds a move half done finishes it: the second step of each needs no lock, only the knowledge that the first was made, and may be
//     made late, twice or by several.
//
// Each statement to the table says which home it is for, and each request to the cluster which epoch, so that whoever has an old idea of
// where a key is, is refused and never honoured, be it a week old: what a process remembers needs no expiry. Tokens are
// epoch<<40 plus a counter and grow across every move.
//
// # Guarantees
//
// One owner per key and tokens that grow hold across moves without any clock, as they do in the table: an epoch is opened in the cluster only
// after the row has said that the key has left, a row takes a key back only after its epoch was sealed, which is final, and a new
// epoch is always above all before it. Fence works for keys that have moved: it checks the epoch in the row, and leaves the
// token there.
//
// What is not guaranteed: a key in a cluster that is down cannot be locked, and nothing falls back to the table by itself. [Bridge.State] says
// so, calls fail in bounded time, and [Bridge.ForceReturn] takes keys back by force if [Config].Delegation allows it. A database that
// forgets what it has acknowledged, as one that fails over to a replica which lagged, forgets moves too: an audit finds and
// mends that ([Bridge.Audit]), but until then a key may be granted in both. UnlockTx does not work for a key in the cluster, nor do LockAll
// and Fair with one: pin such keys to the table.
package paxosbridge
