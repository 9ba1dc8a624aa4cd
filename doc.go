// Package rowlock gives an application that has only a database the locks that others run a lock service for.
//
// A lock is a lease: a row with an owner, a fencing token and an expiry, in the database that also holds the application's
// data. So it can do what no lock service can: be checked inside the very transaction that writes the data.
//
//	db, _ := sql.Open("pgx", dsn)                    // any *sql.DB; a *sqlx.DB will do
//	_ = schema.Migrate(ctx, db, postgres.New())      // or your own migration tool, from the same files
//	locks, err := rowlock.Open(db, postgres.New(), nil)
//	defer locks.Close()
//
//	err = locks.Do(ctx, "invoice/42", func(ctx context.Context, l *rowlock.Lock) error {
//		tx, err := db.BeginTx(ctx, nil)
//		if err != nil {
//			return err
//		}
//		defer tx.Rollback()
//		if err := l.Fence(ctx, tx); err != nil { // still ours, and nobody's until tx ends
//			return err
//		}
//		// … write what the lock protects …
//		return tx.Commit()
//	})
//
// # What is guaranteed
//
//  1. Row exclusion, hard. The database records at most one owner per key. Every change is one conditional statement or one
//     transaction on that key's row. No clock is needed.
//  2. Token order, hard. The tokens granted for a key strictly increase for ever: across release, expiry, takeover, the removal
//     of dead rows and their re-creation. No clock is needed.
//  3. Data safety, hard for those who fence. A write in a transaction that began with [Lock.Fence] is refused if anybody has
//     taken the key since, however long the writer slept. No clock is needed.
//  4. Time exclusion, soft. A holder's [Lock.Context] ends before its lease can pass to another, as long as the clocks below
//     behave. It is never called guaranteed.
//  5. Loss is never silent. A holder that can no longer prove its lease is told, at or before its own deadline.
//
// # What is not
//
// Without Fence, and without a token compared where the data are, no lease of any kind keeps two processes apart: one may be
// stopped between looking at its lock and writing. Nor can a token outlive the row it counts in: after TRUNCATE of the tables,
// or a failover to a replica that had not yet received a grant, tokens may repeat; replicate synchronously where that matters.
//
// # The clocks it rests on
//
// Whether a lease has expired is decided by the database's clock alone, in SQL; this process's time never enters a statement.
// The process's own monotonic clock only makes a holder stop sooner: TTL less Config.Margin after the request was sent that
// granted or renewed the lease. Point 4 therefore needs that the database's clock does not jump ahead by more than the margin
// between two renewals, that the two clocks run at the same speed to within Margin/TTL, and that the process's clock goes on
// while its machine sleeps. On SQLite the database's clock is the host's.
//
// # Waiting
//
// Who waits costs nothing: of the callers that wait for a key in a client only the first asks the database, and one statement
// looks at all the keys that the client waits for. Unlock hands the key to the next of them. What is told between processes is a
// hint, which may be lost; a poll guarantees. A key that came free elsewhere is bid for within Config.PollMax, and one whose holder
// died when its lease has expired. Between processes there is no order, unless all clients of a key are Fair.
//
// # Other ways
//
// Package forupdate locks rows in a transaction of yours, and has a store whose held lock is a transaction; package optimistic changes
// rows that are still as they were read, and has a store that needs no row locks; package once has an effect once by its key.
// docs/choosing.md says which to take when.
//
// # Keys
//
// Keys are 1 to 255 bytes, compared exactly, the same on every database: "A", "a", "a " and "á" are four keys.
package rowlock
