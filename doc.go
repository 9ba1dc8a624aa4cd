// Package rowlock gives an application that has only a database the locks that others run a lock
// service for.
//
// A lock is a lease: a row with an owner, a fencing token and an expiry, in the database that also
// holds the application's data. So it can do what no lock service can: be checked inside the very
// transaction that writes the data.
//
//	db, _ := sql.Open("pgx", dsn)                    // any *sql.DB; a *sqlx.DB will do
//	_ = schema.Migrate(ctx, db, postgres.New())      // or your migration tool, same files
//	locks, err := rowlock.Open(db, postgres.New(), nil)
//	defer locks.Close()
//
//	err = locks.Do(ctx, "invoice/42", func(ctx context.Context, l *rowlock.Lock) error {
//		tx, err := db.BeginTx(ctx, nil)
//		if err != nil {
//			return err
//		}
//		defer tx.Rollback()
//		if err := l.Fence(ctx, tx); err != nil { // still held, and not takeable until tx ends
//			return err
//		}
//		// … write what the lock protects …
//		return tx.Commit()
//	})
//
// # What is guaranteed
//
//  1. Row exclusion, hard. The database records at most one owner per key. Every change is one
//     conditional statement or one transaction on that key's row. No clock is needed.
//  2. Token order, hard. The tokens granted for a key strictly increase for ever: across release,
//     expiry, takeover, the removal of dead rows and their re-creation. No clock is needed. They
//     also increase across a failover or a restored backup that has lost commits, as long as the
//     database's clock is not set back.
//  3. Data safety, hard with fences. A write in a transaction that began with [Lock.Fence] is
//     refused if another owner has taken the key since, however long the writer slept. No clock is
//     needed.
//  4. Time exclusion, soft. A holder's [Lock.Context] ends before its lease can pass to another
//     owner, as long as the clocks below behave. It is never called guaranteed.
//  5. Loss is never silent. A holder that can no longer prove its lease is told, at or before its
//     own deadline.
//
// # What is not
//
// Without Fence, and without a token compared where the data are (package tokenfence), no lease of
// any kind keeps two processes apart: a process may be stopped between reading its lock and
// writing. After TRUNCATE of the tables, or a restore under clients that stay connected, tokens may
// repeat. A failover to a replica that had not yet received a grant loses that lock: its fences are
// refused, and another client can get the key. Replicate synchronously where that matters: see
// docs/failover.md. Tokens are large after the server was first restarted: a [Token] is an integer
// in databases and a string in JSON, because a double rounds it.
//
// # The clocks it depends on
//
// The database's clock alone decides, in SQL, whether a lease has expired. This process's time
// never enters a statement. The process's own monotonic clock only makes a holder stop sooner: TTL
// less Config.Margin after the request was sent that granted or renewed the lease.
//
// Point 4 therefore needs three things. The database's clock does not jump ahead by more than the
// margin between two renewals. Clock rates differ by less than Margin/TTL. The process's clock
// keeps running while its machine is suspended. On SQLite the database's clock is the host's.
//
// # Waiting
//
// A waiter costs nothing. Of the callers in one client that wait for a key, only the first asks the
// database, and one statement polls all keys that the client waits for. Unlock hands the key to the
// next caller. Polling guarantees progress; notifications only reduce latency. A key that was
// released elsewhere is attempted within about Config.PollMax by one of those that wait, and a dead
// holder's when its lease has expired. Between processes there is no order, unless all are Fair.
//
// # Other ways
//
// Package forupdate locks rows in a transaction of yours, and has a store whose held lock is a
// transaction. Package optimistic changes rows that are still as they were read, and has a store
// that needs no row locks. Package once has an effect once by its key. docs/choosing.md says when
// to use which.
//
// # Keys
//
// Keys are 1 to 255 bytes, compared exactly, the same on every database: "A", "a", "a " and "á" are
// four keys.
package rowlock
