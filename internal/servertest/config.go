package servertest

import (
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// LongConfig is quiet, does not sweep, and has long leases.
func LongConfig(change func(*rowlock.Config)) *rowlock.Config {
	cfg := &rowlock.Config{
		TTL: LongTTL, Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
	}
	if change != nil {
		change(cfg)
	}
	return cfg
}

// Open opens a client on db with a LongConfig.
func Open(tb testing.TB, db *sql.DB, e *testdb.Env, change func(*rowlock.Config)) *rowlock.Client {
	tb.Helper()
	c, err := rowlock.Open(db, e.Dialect, LongConfig(change))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return c
}

// Config is quiet and does not sweep, unless changed.
func Config(change ...func(*rowlock.Config)) *rowlock.Config {
	cfg := &rowlock.Config{Logger: slog.New(slog.DiscardHandler)}
	cfg.Reaper.Off = true
	for _, f := range change {
		f(cfg)
	}
	return cfg
}

// WithTTL sets the TTL.
func WithTTL(d time.Duration) func(*rowlock.Config) {
	return func(c *rowlock.Config) { c.TTL = d }
}

// WithPoll sets PollMax.
func WithPoll(most time.Duration) func(*rowlock.Config) {
	return func(c *rowlock.Config) { c.PollMax = most }
}

// WithStrategy sets how rows are made.
func WithStrategy(st rowlock.Strategy) func(*rowlock.Config) {
	return func(c *rowlock.Config) { c.Strategy = st }
}

// WithSweep has the client sweep so often, and remove every dead row.
func WithSweep(every time.Duration) func(*rowlock.Config) {
	return func(c *rowlock.Config) {
		c.Reaper = rowlock.ReaperConfig{Every: every, Retention: time.Nanosecond, Pause: -1}
	}
}

// Strategies are all there are.
var Strategies = []rowlock.Strategy{rowlock.Update, rowlock.Insert}

// FromEnvironment reads a whole number from the environment: how hard to try.
func FromEnvironment(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// Numbered is the key of a number.
func Numbered(i int) string { return fmt.Sprintf("key-%d", i) }

// WithLog has the client write its log to w.
func WithLog(w io.Writer) func(*rowlock.Config) {
	return func(c *rowlock.Config) { c.Logger = slog.New(slog.NewTextHandler(w, nil)) }
}
