package once

import (
	"cmp"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
)

// Config says how long results are kept and how long repeats wait. nil and the zero value have the
// defaults.
type Config struct {
	// Keep is how long a result is kept after its transaction claimed the key; 0 means 24 h. A
	// later repeat runs again, so make it longer than any client goes on repeating.
	Keep time.Duration
	// Wait is how long a repeat waits for one that is in flight; 0 means 5 s. Meanwhile at most one
	// repeat of a key and process holds a connection. MySQL and MariaDB round it up to whole
	// seconds. If several processes are ahead and each fails, it can be some seconds more.
	Wait time.Duration
	// NoWait makes a repeat of one in flight return an *InFlightError at once. Wait is then only
	// for an unknown outcome of the call's own. It costs MySQL and MariaDB one more statement per
	// Do. In a transaction of the caller's, that statement would make two fresh keys deadlock, so
	// that the client closes the connection after 0.3 s on MySQL. On SQLite it works for repeats in
	// this process; between processes, a call waits for the file's write lock for the connection's
	// busy_timeout.
	NoWait bool
	// MaxResult is the largest result in bytes; 0 means 1 MiB. The maximum is 8 MiB, because the
	// databases' own limits on a statement are not far above. A result of 32 KiB and more costs MySQL
	// and MariaDB a statement more, which asks for max_allowed_packet.
	MaxResult int
	// MostPerTenant is how many keys Request.Tenant may have stored at a time: Do refuses a new one
	// beyond them with ErrTenantFull until old ones expire and are swept. Calls at the same moment can
	// exceed it by as many. 0 means any number. It costs a statement per Do, which reads as many rows
	// of an index. In does not look.
	MostPerTenant int
	// Reap is the time between two removals of expired rows in the background, plus or minus a
	// tenth; 0 means 5 min. A negative value means no background: then call Sweep.
	Reap time.Duration
	// TxOptions are the options of Do's transactions; nil means the database's defaults. With
	// postgres.Pooled they, synchronous_commit and the limits on time are those of the role and the
	// database, whatever other clients have left in the session; that costs a round trip. The role
	// and the search_path, by which the function's own tables are found, are the session's.
	TxOptions *sql.TxOptions
	// Logger gets the warnings of New and errors of the background; nil means slog.Default(). Its
	// handler is called by a goroutine of its own; New and Close wait 1 s for it.
	Logger *slog.Logger
}

const (
	mostResult = 8 << 20
	leastKeep  = time.Second
	mostKeep   = 100 * 365 * 24 * time.Hour
	mostWait   = 10 * time.Minute
	mostReap   = mostKeep // so that a tenth more does not overflow
)

func (c *Config) withDefaults() Config {
	out := *cmp.Or(c, new(Config))
	out.Keep = cmp.Or(out.Keep, 24*time.Hour)
	out.Wait = cmp.Or(out.Wait, 5*time.Second)
	out.MaxResult = cmp.Or(out.MaxResult, 1<<20)
	out.Reap = cmp.Or(out.Reap, 5*time.Minute)
	out.Logger = tell.Logger(cmp.Or(out.Logger, slog.Default()))
	return out
}

func (c Config) check() error {
	switch {
	case c.Keep < leastKeep || c.Keep > mostKeep:
		return fmt.Errorf("%w: Keep is %s: it must be between %s and 100 years",
			lease.ErrConfig, c.Keep, leastKeep)
	case c.Wait < time.Millisecond || c.Wait > mostWait:
		return fmt.Errorf("%w: Wait is %s: it must be between 1ms and %s; not to wait at all, set NoWait",
			lease.ErrConfig, c.Wait, mostWait)
	case c.Wait >= c.Keep:
		return fmt.Errorf("%w: Wait (%s) must be less than Keep (%s), or a result expires before it is done",
			lease.ErrConfig, c.Wait, c.Keep)
	case c.Reap > mostReap:
		return fmt.Errorf("%w: Reap is %s: it must be at most 100 years; for no background, make it negative",
			lease.ErrConfig, c.Reap)
	case c.MostPerTenant < 0:
		return fmt.Errorf("%w: MostPerTenant is %d: for any number, leave it 0", lease.ErrConfig, c.MostPerTenant)
	case c.MaxResult < 0 || c.MaxResult > mostResult:
		return fmt.Errorf("%w: MaxResult is %d: it must be between 1 and %d bytes", lease.ErrConfig,
			c.MaxResult, mostResult)
	}
	return nil
}
