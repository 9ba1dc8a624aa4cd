// Package gooserowlock has several processes migrate with goose 3.30 (github.com/pressly/goose/v3)
// one after the other, on PostgreSQL, MySQL, MariaDB and SQLite, under the locks of rowlock.
//
//	p, err := goose.NewProvider(goose.DialectPostgres, db, files)
//	…
//	results, err := gooserowlock.Up(ctx, db, postgres.New(), p)
//
// Up ends the migrations if the lock is lost: their ctx ends, the transaction of the one that runs is
// rolled back, and the error wraps rowlock.ErrLost. It makes rowlock's tables first. A migration in
// Go reaches the lock, and can fence its transaction:
//
//	func up(ctx context.Context, tx *sql.Tx) error {
//		l, _ := rowlock.FromContext(ctx)
//		if err := l.Fence(ctx, tx); err != nil {
//			return err
//		}
//
// # A Locker
//
// NewLocker is for programs that give goose a Locker: goose.WithSessionLocker or goose.WithLocker,
// with a client whose tables are there. goose does not learn that the lock is lost before it unlocks:
// it returns ErrLost then, after it has migrated to the end. A migration in Go can fence
// Locker.Held. So prefer Up.
//
// After kill -9 of the process that migrates, the next one goes on after Config.TTL, and with Up
// after 30 s, or two minutes on SQLite. There no lock is renewed while a migration writes: give a
// Locker on SQLite rowlock.TTL(2*time.Minute) too.
//
// Processes that migrate with another lock of goose's, or with none, are not kept out.
package gooserowlock
