// Package setting is rowlock as benchmarks configure it.
package setting

import (
	"log/slog"

	"github.com/rowlockdb/rowlock"
)

// CanRelax is true if a release may be relaxed: it need not wait for the disk. On MySQL and MariaDB
// that is a setting of the server, and of no commit.
func CanRelax(database string) bool { return database == "postgres" || database == "sqlite" }

// Config is a client's. The reaper, which benchmarks do not time, is off.
func Config(connections int, relaxed bool) *rowlock.Config {
	return &rowlock.Config{
		Connections: connections, Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
		DurableRelease: !relaxed,
	}
}
