package latch

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/latch/internal/rows"
	"github.com/rowlockdb/rowlock/lease"
)

// MaxParties is the largest number of parties. A poll of Await counts the rows of those that have
// counted down.
const MaxParties = rows.MaxParties

// Config configures Latches. nil and the zero value have the defaults.
type Config struct {
	// Keep is how long a latch is kept after it was last opened, reset or awaited; 0 means 24 h. It
	// is then as if it had never been. Make it longer than a party can stay away.
	Keep time.Duration
	// Alive is how long a barrier believes in a party after its last heartbeat; 0 means 30 s. A
	// heartbeat is sent each third of it.
	Alive time.Duration
	// Poll is the longest time between two polls of a latch that the process waits for; 0 means
	// 250 ms. The first pauses are shorter. All waiters of a latch in a process share one poll.
	Poll time.Duration
	// Connections is how many connections to keep; 0 means 4, or 1 on SQLite, or fewer of a small
	// pool.
	Connections int
	// NoHints has Await poll, and no process announce that a latch is open. Only SQLite has no
	// notifications. They need a connection to listen on while the process waits.
	NoHints bool
	// Sweep is the time between two removals of what is older than Keep, plus or minus a tenth; 0
	// means 15 min. A negative value means no background: then call Latches.Sweep.
	Sweep time.Duration
	// Logger gets warnings; nil means slog.Default(). Its handler is called by a goroutine of its
	// own; New and Close wait 1 s for it.
	Logger *slog.Logger
}

const (
	usualConnections = 4
	leastTime        = 10 * time.Millisecond
	mostTime         = 100 * 365 * 24 * time.Hour
	mostAlive        = 24 * time.Hour
)

func (c *Config) withDefaults() Config {
	out := *cmp.Or(c, new(Config))
	out.Keep = cmp.Or(out.Keep, 24*time.Hour)
	out.Alive = cmp.Or(out.Alive, 30*time.Second)
	out.Poll = cmp.Or(out.Poll, 250*time.Millisecond)
	out.Sweep = cmp.Or(out.Sweep, 15*time.Minute)
	out.Logger = tell.Logger(cmp.Or(out.Logger, slog.Default()))
	return out
}

func (c Config) check() error {
	switch {
	case c.Keep < time.Second || c.Keep > mostTime:
		return fmt.Errorf("%w: Keep is %s: it must be between 1s and 100 years", lease.ErrConfig, c.Keep)
	case c.Alive < time.Second || c.Alive > mostAlive:
		return fmt.Errorf("%w: Alive is %s: it must be between 1s and %s", lease.ErrConfig, c.Alive, mostAlive)
	case c.Poll < leastTime || c.Poll > time.Minute:
		return fmt.Errorf("%w: Poll is %s: it must be between %s and 1m", lease.ErrConfig, c.Poll, leastTime)
	case c.Connections < 0:
		return fmt.Errorf("%w: Connections is %d: it must be 1 or more, or 0 for the default", lease.ErrConfig, c.Connections)
	case c.Sweep > mostTime:
		return fmt.Errorf("%w: Sweep is %s: it must be at most 100 years; for no background, make it negative",
			lease.ErrConfig, c.Sweep)
	}
	return nil
}
