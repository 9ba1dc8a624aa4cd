// Package groupreplication is a [paxosbridge.Cluster] whose memory is a group of MySQL servers under Group Replication, with a single
// primary. The group's consensus, XCom, is a Paxos: a transaction is committed once a majority has agreed on its place in the order of all.
//
// The keys' records are rows in rowlock's own tables, which schema.Migrate makes on the group's [Primary]:
//
//	db, err := groupreplication.Primary(ctx, members)
//	err = schema.Migrate(ctx, db, mysql.New())
//	cluster, err := groupreplication.New(ctx, members)
//
// # What is trusted
//
// An acknowledged write survives the loss of the primary, because a majority had it; and who is elected next serves nothing before it has
// applied what the group agreed on (group_replication_consistency, which each session raises for itself to BEFORE_ON_PRIMARY_FAILOVER).
// [New] refuses what would make less of that, with lease.ErrTopology and the setting's name, and so does every session that is made after
// it, on whichever member: several primaries, fewer than three members (fewer than two after a failure: a majority of two is
// both), and settings under which a crash of all of them at once forgets what was acknowledged. docs/decisions/0017 has the list, and what
// is not on it and why.
//
// Leases run by the clock of the primary. When another member becomes primary they run by its clock: keep the members' clocks together
// to well within rowlock's margin.
//
// # Failures
//
// Group Replication takes some 5 s to suspect a member that is silent, and group_replication_member_expel_timeout (5 s unless set
// otherwise) to expel it. Calls wait meanwhile for as long as their context lasts, with a bound. A commit that the group did not
// answer has an unknown outcome, also where the server says that it was rolled back; it is asked for again on the next primary, by
// the same owner.
//
// A primary that is cut off blocks in COMMIT until it is back, or until group_replication_unreachable_majority_timeout if that is set.
// It still answers reads. So nothing is granted by a read here: who asks again for what he has is answered by a write.
package groupreplication
