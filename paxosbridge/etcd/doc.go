// Package etcd keeps hot keys in an etcd cluster: a [paxosbridge.Cluster], and by itself a lease.Store. An acquire, a release, a
// hand-over and a batch of up to 64 renewals are one transaction of etcd's each, and so one round trip. Whoever is refused asks once more
// the first time that he sees an etcd lease of another process: how long it lasts.
//
// The package is a module of its own, so that only its users get etcd's client and grpc. Update it together
// with github.com/rowlockdb/rowlock.
//
// # What is kept
//
// Each key has a record, for ever, at Prefix + "r/" + the key in hexadecimal. Its value begins with the epoch, in 16 hexadecimal digits,
// and "o" (open) or "s" (sealed), so that comparing bytes compares epochs; then come the owner who was last granted the key, when by the
// clock of that client, and the note. The counter of a token is the record's version, by which etcd counts how often the record was
// written; a record is only written to grant, to release, to open and to seal.
//
// A key that is held has a second one, at Prefix + "h/" + the key in hexadecimal, that is attached to an etcd lease. Whether that is
// there decides who holds: etcd removes it when the lease ends.
//
// etcd keeps every version of both until it is compacted. Unless somebody does that anyway, as Kubernetes does for its own, run it with
// --auto-compaction-mode=periodic --auto-compaction-retention=1h or the like: otherwise a few million locks fill its default quota of 2 GB,
// and it takes no more writes.
//
// # When leases end
//
// A lease is never let end before its TTL, and may end later. To grant an etcd lease for each lock would be a second round trip, and
// etcd is slow with many. So there are a few, which were granted ahead and are shared: a lock may last longer than its TTL by an eighth
// of that, or by a second if that is more, and by another second, because etcd counts in whole ones. It grants none below one and a half
// of its election timeout, 2 s by default. It looks for ended leases twice a second, and after each change of leader it begins to
// count anew. Nothing tells its clock, so that a watchdog cannot see whether it runs ahead.
//
// # What can be rested on
//
// Whatever happens to up to half of the members, no key is granted twice, and no token comes again. A cluster that was restored from a
// backup has forgotten what came after it, tokens too: seal or open the keys in a higher epoch, as a bridge does.
//
// An old leader whose disk or processor hangs can end leases before their time (etcd-io/etcd#15247; mended since); its clients lose the
// key then, and see it with the next renewal. As with all leases, only a fence in the transaction that writes the data makes that
// harmless.
package etcd
