package schema

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// aloneKey is the lock of Alone.
const aloneKey = "rowlock.schema.Alone"

// Alone runs f, the application's own migrations, in one process at a time, whatever tool runs
// them. The others wait for as long as ctx lasts, and run f then: their tool finds nothing to do.
//
// It holds a lock of rowlock's, the key "rowlock.schema.Alone", because a session's lock would not
// survive a pooler, and a file's would keep f itself from writing. So it calls [Migrate] first, for
// these sets. Leave the files of [FS] out of what f runs, because f would make those tables again.
//
// The lock is renewed while f runs. If it is lost, the ctx that f gets ends with
// [rowlock.ErrLost] as its cause, and the error is f's joined with that. Otherwise the error is
// f's own. A panic of f goes on after the lock was released.
//
// After a process that was killed the next one goes on within 30 s. On SQLite it is two minutes,
// because the lock cannot be renewed while a transaction of f writes: one that writes for longer
// loses it. The pool must have room for two connections beside those of f.
func Alone(
	ctx context.Context, db dialect.DB, d dialect.Dialect, f func(ctx context.Context) error, sets ...Set,
) error {
	if f == nil {
		return fmt.Errorf("%w: schema.Alone: the function is nil", lease.ErrConfig)
	}
	if err := migrate(ctx, "schema.Alone", db, d, sets); err != nil {
		return err
	}
	cfg := rowlock.Config{TTL: 30 * time.Second, Connections: 2}
	if sqlstore.Of(d).OneWriter {
		cfg.TTL = 2 * time.Minute
	}
	c, err := rowlock.OpenContext(ctx, db, d, &cfg)
	if err != nil {
		return err
	}
	defer c.Close() // an error is of a release, which the end of the lease makes good
	return c.Do(ctx, aloneKey, func(ctx context.Context, _ *rowlock.Lock) error { return f(ctx) })
}
