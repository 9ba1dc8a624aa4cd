// Package groupreplication is a [paxosbridge.Cluster] on MySQL Group Replication with a single
// primary. The group's consensus, XCom, is a Paxos: a transaction is committed once a majority has
// agreed on its place in the order of all transactions.
//
// The keys' records are rows in rowlock's own tables, which schema.Migrate makes on the group's
// [Primary]:
//
//	db, err := groupreplication.Primary(ctx, members)
//	err = schema.Migrate(ctx, db, mysql.New())
//	cluster, err := groupreplication.New(ctx, members)
//
// # What is trusted
//
// An acknowledged write survives the loss of the primary, because a majority had it. The next
// primary serves nothing before it has applied what the group agreed on: each session raises
// group_replication_consistency to BEFORE_ON_PRIMARY_FAILOVER for itself.
//
// [New] refuses a group that cannot guarantee that, with lease.ErrTopology and the setting's name,
// and so does every later session on any member. It refuses several primaries, fewer than three
// members (fewer than two after a failure, because a majority of two is both), and settings under
// which a crash of all members at once loses acknowledged writes. docs/decisions/0017 has the list,
// and what is not on it and why.
//
// Leases run by the clock of the primary. When another member becomes primary they run by its
// clock: keep the members' clocks together to well within rowlock's margin.
//
// # Failures
//
// Group Replication takes some 5 s to suspect a silent member, and
// group_replication_member_expel_timeout (5 s by default) to expel it. Calls wait meanwhile until
// their context ends, with a bound. A commit that the group did not answer has an unknown outcome,
// even if the server says that it was rolled back. The next primary gets the same request again,
// with the same owner.
//
// A primary that is cut off blocks in COMMIT until it is back, or until
// group_replication_unreachable_majority_timeout if that is set. It still answers reads. So this
// package grants nothing after a read alone: a repeated request of the holder is answered after a
// write.
package groupreplication
