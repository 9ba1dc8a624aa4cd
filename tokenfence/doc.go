// Package tokenfence refuses late writes where Lock.Fence cannot: to data in another database than
// the lock's, and to an object store.
//
// The token of a lock grows with each holder. A [Fence] keeps the highest token beside the data, in
// a column of a table of yours, and refuses a transaction that comes with a lower one:
//
//	at := tokenfence.Rows{Table: "report", Key: "id", Token: "token"}
//	reports, err := tokenfence.New(postgres.New(), at)
//	…
//	tx, err := data.BeginTx(ctx, nil) // on the database that has the data
//	defer tx.Rollback()
//	if err := reports.Pass(ctx, tx, id, l.Token()); err != nil {
//		return err // ErrFenced: another holder has written since
//	}
//	// … read and write what the lock protects …
//	return tx.Commit()
//
// # What is guaranteed
//
// Once a transaction that has passed with a token is committed, no transaction passes with a lower
// token for this row. Two transactions never pass the same row side by side: the second waits until
// the first has ended. Both hold without any clock, however long a process was stopped, and are
// decided by one statement in the transaction that writes.
//
// # What is not
//
//   - Until the newest holder has passed, an older one still passes, because the data's database
//     does not hear of a grant. So call Pass first and read afterwards, in the same transaction.
//     What was read before may change.
//   - A row is protected by one lock key. Tokens of different keys do not compare.
//   - A deleted row has forgotten its token, as has a table that was truncated or restored from a
//     backup. If your data is deleted, keep the tokens in a table of their own: see Rows.Create.
//   - If the tables of the locks are lost or made anew, tokens begin again, and every holder is
//     refused. Stop all clients, then set the column to 0.
//   - A writer that does not call Pass is not refused.
//
// Where the lock and the data are in one database, use Lock.Fence: it refuses an older holder from
// the moment of the next grant on.
//
// [Swap] does the same for a store without transactions that can write on condition that an object
// is still as it was read.
package tokenfence
