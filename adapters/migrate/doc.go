// Package migraterowlock has several processes migrate with golang-migrate 4
// (github.com/golang-migrate/migrate/v4) one after the other, under the locks of rowlock.
//
//	own, err := pgx.WithInstance(db, &pgx.Config{}) // database/pgx/v5 of migrate
//	…
//	driver, err := migraterowlock.New(own, locks, "migrations")
//	…
//	m, err := migrate.NewWithInstance("iofs", files, "app", driver)
//	…
//	err = m.Up()
//
// The drivers' own locks end with a session, which a pooler may share; that of SQLite is one of the
// process alone. Here the key's row is asked, and the driver's lock is taken besides, so that
// processes that migrate without this Driver are kept out as before.
//
// # When the lock is lost
//
// Migrate gives no ctx to a migration, so that none can be ended in the middle. Once the lock is
// lost, Driver runs no migration more and writes no version. The error wraps rowlock.ErrLost. The
// version then stays dirty if a migration was under way: another process may have found it, and
// refuses to migrate, until a person has looked. schema.Alone around m.Up would not be sound: m.Up
// looks at no ctx, and would go on to the last migration.
//
// After an error of Driver.Unlock, as of a lost lock, the same Migrate returns migrate.ErrLocked for
// ever, although nothing is locked. Make a new one.
//
// A process that is stopped between this check and its statement is refused by nothing, because the
// driver's transaction cannot be fenced. With goose it can: see adapters/goose.
//
// After kill -9 of the process that migrates, the next one goes on after Config.TTL, unless the
// version is dirty. Lock waits for 12 s. Where migrations take longer, start again after ErrLocked,
// or set Migrate.LockTimeout, which must be longer than 12 s in any case.
package migraterowlock
