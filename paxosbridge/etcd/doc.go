// Package etcd keeps hot keys in an etcd cluster: a [paxosbridge.Cluster], and by itself a
// lease.Store. An acquire, a release, a hand-over and a batch of up to 64 renewals are one
// transaction of etcd each, and so one round trip. A refused client makes one more request the
// first time it meets an etcd lease of another process, to learn how long that lasts.
//
// The package is a module of its own, so that only its users get etcd's client and grpc. Update it
// together with github.com/rowlockdb/rowlock.
//
// # What is kept
//
// Each key has a record, for ever, at Prefix + "r/" + the key in hexadecimal. Its value begins with
// the epoch, in 16 hexadecimal digits, and "o" (open) or "s" (sealed), so that comparing bytes
// compares epochs. The last owner follows, the time of its grant by its own clock, and the note.
// The counter of a token is the record's version: etcd counts how often the record was written. A
// record is only written to grant, to release, to open and to seal.
//
// A held key has a second name, at Prefix + "h/" + the key in hexadecimal, attached to an etcd
// lease. The key is held as long as that name exists: etcd removes it when the lease ends.
//
// Prefix + "t" names the table whose keys these are, and its placement. The first bridge writes it,
// and a bridge of another table is refused. A restored table has the same name, and a new one
// another: delete Prefix + "t" once if new tables replace lost ones.
//
// etcd keeps every version of the first two until it is compacted. Run it with
// --auto-compaction-mode=periodic --auto-compaction-retention=1h or the like, unless another system
// compacts it, as Kubernetes does for its own. Otherwise a few million locks fill the default quota
// of 2 GB, and etcd accepts no more writes.
//
// # When leases end
//
// A lease never ends before its TTL, and may end later. An etcd lease for each lock would be a
// second round trip, and etcd is slow with many. So there are a few, which are granted ahead and
// shared. A lock may outlast its TTL by an eighth of it, or by a second if that is more, and by
// another second, because etcd counts whole seconds. etcd grants no lease below one and a half of
// its election timeout, 2 s by default. It looks for ended leases twice a second, and counts anew
// after each change of leader. etcd does not report its clock, so that a watchdog cannot see
// whether that runs ahead.
//
// # Guarantees
//
// Whatever happens to fewer than half of the members, no key is granted twice and no token is
// repeated. A cluster restored from a backup has forgotten later commits and tokens: seal or open
// the keys in a higher epoch, as a bridge does.
//
// An old leader whose disk or processor hangs can end leases before their time (etcd-io/etcd#15247,
// fixed since). Its holders lose the key then, and learn it from the next renewal. As with all
// leases, only a fence in the transaction that writes the data makes that harmless.
package etcd
