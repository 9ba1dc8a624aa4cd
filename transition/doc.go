// Package transition leads from another lock to rowlock's without a moment in which two processes
// hold one key: from pg_advisory_lock, GET_LOCK, bsm/redislock, and ShedLock's table.
//
// For one release each process takes rowlock's lock and then the old one; for the next, rowlock's
// alone. Old processes and those with Both keep each other out by the old lock, those with Both and
// with New by ours. Old ones and New have nothing in common, and must not be beside each other.
//
//	store, err := rowlock.OpenTable(db, postgres.New(), nil)
//	…
//	locks, err := transition.Start(ctx, transition.Config{
//		Stage: transition.Both, // and New with the next deployment
//		Old:   transition.Advisory(db, jobID),
//		Locks: client, Notices: store,
//	})
//	…
//	l, err := locks.Lock(ctx, "nightly") // as rowlock.Client's; l.Ours() fences
//
// Go back the same way. In the end leave the package out, and Forget the record.
//
// # Each lock
//
// Advisory and GetLock take the lock in a session of their own, a connection of the pool for each lock:
// not through PgBouncer in transaction mode, and on the server that old processes ask.
// pg_advisory_xact_lock is the same lock as pg_advisory_lock: leave that call out of your transaction
// from Both on, or it waits for this session, and fence instead. Redislock refreshes its key;
// its TTL must be 1 s at least. Client is for ShedLock's table, with a client on package shedlock:
// keep to Both until the last Java process is gone.
//
// # What is refused
//
// Start returns ErrOrder for New until Both was there for Config.Quiet, and if an old process was seen
// meanwhile: a process with Both has found the old lock held on a key whose new one it held itself. An
// old process that has not locked since is not seen. So New also looks at the old lock, each time it
// locks: if an old process holds it, the error is ErrOrder. That finds the mistake. It does not keep
// out an old process that comes a moment later. Remaining says what is known. A process with Both that
// has lost our lock, and still has the old one, is taken for an old one.
//
// # When the old lock is lost
//
// A Redis may lose a key, and a server may end a session. Lock.OldLost says so, a warning is logged,
// and ours is kept: against old processes alone it then does not hold.
package transition
