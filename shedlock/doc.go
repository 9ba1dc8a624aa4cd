// Package shedlock locks in the table of ShedLock 7 (net.javacrumbs.shedlock), so that Go processes
// and Java processes keep each other out, on PostgreSQL, MySQL and MariaDB.
//
//	store, err := shedlock.Open(ctx, db, postgres.New())
//	…
//	locks, err := rowlock.New(store, nil)
//	…
//	l, err := locks.TryLock(ctx, "nightly-report") // the name in @SchedulerLock
//
// The table is the one that ShedLock documents. Open refuses another with what to change:
//
//	-- PostgreSQL; on MySQL and MariaDB TIMESTAMP(3) or DATETIME(3)
//	CREATE TABLE shedlock (
//	    name VARCHAR(64) NOT NULL PRIMARY KEY, lock_until TIMESTAMP NOT NULL,
//	    locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL)
//
// Without a schema in its name it is the one that a new connection of the pool finds: by the DSN,
// the role and the database, and not by what an application has sent since (SET search_path, USE).
// Each call begins with one short statement more, but through pgx, and on MySQL and MariaDB with
// two: what an application has left open on the connection is rolled back, and a session without
// autocommit, or with a clock or a time zone of its own, is closed.
//
// # What the table cannot do
//
// Its rows have no token. Lock.Token is 0, so that nothing can refuse what a holder writes after it
// has lost the lock. Fence, DoTx, UnlockTx, RLock, ForceRelease, Semaphore, Config.Fair and
// Config.Trace return ErrUnsupported. Waiters poll: Java processes notify no other. If that is not
// enough, move to rowlock's own table: package transition.
//
// # Whose clock counts
//
// The database's, in UTC: configure each Java process with usingDbTime(). One that uses its own
// clock writes that into lock_until, and reads it there. A clock that is a minute ahead takes a lock
// that Go holds a minute early, and with a clock a minute behind it believes for a minute that it
// holds what Go has taken. So does a time zone other than UTC, of which forceUtcTimeZone() is free.
//
// A row that was locked more than 500 ms in the future, and one that was locked more than 5 s before
// it was last seen unlocked, show such a clock. The store then grants this key no more until another
// process has locked it by the right clock, and its errors wrap ErrConfig. It cannot find a clock of
// which it has seen no row. Holders here stop Config.Margin early, which bears a clock that is less
// ahead.
//
// On MySQL and MariaDB a TIMESTAMP column depends on the time zone of the session. Open refuses a
// pool that sets one of its own: Java's sessions must have the server's too. DATETIME(3) does not
// depend on it.
//
// # Who holds a key
//
// locked_by has a number for each attempt, and then the client's identity, so that no process takes
// the lock of another for its own. A Java process writes its host there: two on one host unlock each
// other's locks, but none of ours. Rows are never removed, because a Java process inserts only once.
package shedlock
