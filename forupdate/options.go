package forupdate

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/opening"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
)

type options struct {
	connections int
	timeout     time.Duration
	look        time.Duration
	logger      *slog.Logger
}

// Option configures a Store or a Locker.
type Option func(*options) error

// Connections is the largest number of locks that a Store holds at once, 16 by default. Each takes
// a connection of the pool. One more is refused with lease.ErrBusy.
func Connections(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return fmt.Errorf("%w: Connections (%d) must be at least 1", lease.ErrConfig, n)
		}
		o.connections = n
		return nil
	}
}

// Timeout is how long Lock and LockRows of a Locker wait for another transaction: 5 s by default,
// at least 1 ms, and no longer than their ctx lasts. On MySQL the session's
// innodb_lock_wait_timeout (50 s by default) ends the wait if it is shorter.
func Timeout(d time.Duration) Option {
	return func(o *options) error {
		if d < time.Millisecond {
			return fmt.Errorf("%w: Timeout (%s) must be at least 1ms; TryLock does not wait at all", lease.ErrConfig, d)
		}
		o.timeout = d
		return nil
	}
}

// Logger gets warnings about the server. The default is slog.Default().
func Logger(l *slog.Logger) Option {
	return func(o *options) error {
		if l == nil {
			return fmt.Errorf("%w: Logger is nil", lease.ErrConfig)
		}
		o.logger = l
		return nil
	}
}

func makeOptions(db DB, d dialect.Dialect, opts []Option) (*sqlstore.Dialect, options, error) {
	o := options{connections: 16, timeout: 5 * time.Second, look: 250 * time.Millisecond, logger: slog.Default()}
	of, err := sqlstore.CheckOpen("forupdate", db, d)
	if err != nil {
		return nil, o, err
	}
	err = opening.Apply("forupdate", &o, opts)
	o.logger = tell.Logger(o.logger) // opening is bounded, and a handler may block
	return of, o, err
}
