// Package quorum keeps locks in several independent databases, so that they outlive the loss of one
// of them: a majority decides. It cannot fence: a lock of a quorum is in no single database, so
// that Lock.Fence and Lock.UnlockTx return lease.ErrUnsupported, and a holder that was stopped for
// longer than its lease can still write. If your data is in one database, locks beside the data are
// safer than this: Fence refuses a late write within the writing transaction, whatever the clocks
// do. To survive the loss of that database, replicate it. Take a quorum if there is no such
// database: if the work is outside all of them, or if locks must go on while any one of them is
// down. Then compare tokens where the data is: see package tokenfence.
//
//	a, err := rowlock.OpenTable(dbA, postgres.New(), nil)
//	b, err := rowlock.OpenTable(dbB, mysql.New(), nil)
//	c, err := rowlock.OpenTable(dbC, sqlite.New(), nil)
//	store, err := quorum.New(a, b, c)
//	locks, err := rowlock.New(store, nil)
//
// The members may be of different products. Each must fail by itself: two schemas on one server are
// one member. Three members survive the loss of one, five that of two.
//
// # How it decides
//
// An acquire goes to all members at once, under one owner. It is granted if a majority has granted
// it, and if their leases still last for longer than the clocks' difference (Config.Drift) when
// their answers are here. A client counts the lease from before its request was sent. So it never
// trusts a lease for longer than a majority keeps it. A renewal extends the lease if a majority has
// extended it in that time, and loses it once a majority cannot have it any more.
//
// What a refused attempt was granted by a minority is released before it returns. A release goes to
// all members, also to those that have not granted the lease or whose answer was lost. A member
// that does not answer is asked again until the lease has expired there.
//
// If several attempts split the votes, the one that has the first member goes on for a moment, and
// the others return "not granted" at once. A client asks again after its own pauses, which have
// jitter. So attempts do not take votes from each other for ever.
//
// # Tokens
//
// Tokens of a quorum grow, without any clock. No number that is computed from the tokens of a
// majority alone grows, because a member that was down lags by any number. So a grant brings its
// majority to one token first: the largest that any of them has granted, if they differ
// ([lease.Raiser]). Every later majority shares a member with this one, and that member's next
// token is above. A token is told only when a majority has it.
//
// # Guarantees
//
//   - Token order holds while each member keeps what it has committed.
//   - Two owners have no majority at the same time, as long as a lease lasts for its TTL at each
//     member, give or take Drift. Loss is told to the holder in time, as with one database.
//   - A call waits for a member that is down, slow or hung for at most Config.Timeout in a round.
//     It does not wait for it at all if the others are a majority that agrees.
//
// # Not guaranteed
//
//   - No Fence, no UnlockTx, no Fair, no notifications, no LockAll in one step (a part that was
//     granted is released), and no detection of cycles between processes: waiters poll.
//   - A clock that jumps at a majority within a lease ends it unseen; at a minority, all is well.
//   - A member that misses an Unlock with MinHold keeps its part of the key until its lease ends.
//   - A member that was cut off for longer than a TTL does not come back into a lease that is held.
//     If members are restarted one after another, locks that are held all the time are lost, and
//     their holders are told, unless each restart is shorter than the TTL.
//   - Two processes must not use one key with different members, or one through the quorum and one
//     through a member alone.
//
// # A member that has forgotten
//
// A database that was restarted without what it had committed (no fsync, a lagging replica, a
// restored backup, an empty table) has forgotten votes. It can then grant a key that a majority
// holds with it, and two owners have a majority. A database that syncs its commits forgets nothing:
// rowlock.OpenTable refuses tables and servers that do not, where it can see it. If a member has
// forgotten, keep it away from all clients until every lease from before has ended: the longest TTL
// in use after the loss. For a holder that renews, that is until a majority of the others no longer
// has its lease: so stop the clients, or wait until no key is held that was held at the loss
// (Inspect shows the age). Before it comes back, raise its floors to the largest token of any other
// member, because tokens can fall otherwise: it forms a majority with a member that lags. The eras
// of a table do not replace that: each member begins its own, and a quorum has none.
//
//	SELECT max(token) FROM rowlock; SELECT max(floor) FROM rowlock_floor; -- at the others
//	UPDATE rowlock_floor SET floor = …                                    -- at the member
package quorum
