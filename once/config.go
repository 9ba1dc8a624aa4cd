package once

import (
	"cmp"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Config says how long results are kept and how long repeats wait. nil and the zero value mean the defaults.
type Config struct {
	// Keep is how long a result is kept, counted from when its transaction claimed the key; the zero value means 24 h. A repeat that
	// comes later is done again: make it longer than any client goes on repeating.
	Keep time.Duration
	// Wait is how long a repeat waits for one that is in flight; the zero value means 5 s. At most one repeat of a key and process
	// holds a connection meanwhile, at most for this long. MySQL and MariaDB round it up to whole seconds. Where several processes
	// are ahead, each of which fails in its turn, it can be some seconds more.
	Wait time.Duration
	// NoWait has a repeat of one in flight return an *InFlightError at once; Wait is then only for an unknown outcome of the call's
	// own. It costs MySQL and MariaDB one more statement a Do; in a transaction of the caller's, where that statement would have two
	// fresh keys lock each other out, MySQL is told by hanging up, after 0.3 s. On SQLite it is for repeats in this process: between processes, who
	// waits for the file's write lock is busy for the connection's busy_timeout.
	NoWait bool
	// MaxResult is the largest result in bytes; the zero value means 1 MiB, and 8 MiB is the most: the databases' own limits on a
	// statement are not far above.
	MaxResult int
	// Reap is the time between two removals of expired rows in the background, give or take a tenth; the zero value means 5 min,
	// a negative one that there is no such background: then call Sweep.
	Reap time.Duration
	// TxOptions are what Do begins its transactions with; nil means the database's defaults.
	TxOptions *sql.TxOptions
	// Logger gets what New warns of, and what goes wrong in the background; nil means slog.Default().
	Logger *slog.Logger
}

const (
	mostResult = 8 << 20
	leastKeep  = time.Second
	mostKeep   = 100 * 365 * 24 * time.Hour
	mostWait   = 10 * time.Minute
	mostReap   = mostKeep // far from where a tenth more would overflow and sweep without a pause
)

func (c *Config) withDefaults() Config {
	if c == nil {
		c = &Config{}
	}
	out := *c
	out.Keep = cmp.Or(c.Keep, 24*time.Hour)
	out.Wait = cmp.Or(c.Wait, 5*time.Second)
	out.MaxResult = cmp.Or(c.MaxResult, 1<<20)
	out.Reap = cmp.Or(c.Reap, 5*time.Minute)
	out.Logger = cmp.Or(c.Logger, slog.Default())
	return out
}

func (c Config) check() error {
	switch {
	case c.Keep < leastKeep || c.Keep > mostKeep:
		return fmt.Errorf("%w: Keep is %s: it must be between %s and 100 years", lease.ErrConfig, c.Keep, leastKeep)
	case c.Wait < time.Millisecond || c.Wait > mostWait:
		return fmt.Errorf("%w: Wait is %s: it must be between 1ms and %s; not to wait at all, set NoWait", lease.ErrConfig, c.Wait, mostWait)
	case c.Wait >= c.Keep:
		return fmt.Errorf("%w: Wait (%s) must be less than Keep (%s), or what a repeat waits for is gone when it is done", lease.ErrConfig, c.Wait, c.Keep)
	case c.Reap > mostReap:
		return fmt.Errorf("%w: Reap is %s: it must be at most 100 years; to have no background at all, make it negative", lease.ErrConfig, c.Reap)
	case c.MaxResult < 0 || c.MaxResult > mostResult:
		return fmt.Errorf("%w: MaxResult is %d: it must be between 1 and %d bytes", lease.ErrConfig, c.MaxResult, mostResult)
	}
	return nil
}
