package rowlock

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/internal/trace"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/reaper"
)

// Strategy is what an acquire tries first. Clients with either strategy can share a table.
type Strategy = dialect.Strategy

const (
	// Update tries the row first and creates it if there is none: for keys that are locked repeatedly.
	Update = dialect.Update
	// Insert creates the row first and reads it if there is one: for keys that are used once, as an
	// order's.
	Insert = dialect.Insert
)

// ReaperConfig says when dead rows are removed, and at what pace. See package reaper.
type ReaperConfig = reaper.Config

// Config configures a Client. nil and the zero value mean the documented defaults.
type Config struct {
	// TTL is how long a lease lasts unless it is renewed. It is the longest time that a key stays
	// locked after its holder has died, unless the holder died in a transaction that fences (see
	// EvictAfter). It also bounds a call without deadline whose database hangs, to within 2.5 s.
	// Default 30 s, at least 100 ms. A shorter TTL frees keys sooner and renews more often.
	TTL time.Duration
	// Margin is how long before the store's expiry a holder stops by itself. It covers the
	// difference in speed of the two clocks and a small step of the store's. Default the larger of
	// TTL/10 and 500 ms, but at most TTL/3.
	Margin time.Duration
	// RenewEvery is the time between renewals. Default TTL/3, so that after one failed renewal the
	// next still comes in time.
	RenewEvery time.Duration
	// MaxHold ends a lock that is held for so long, renewed or not, with cause ErrMaxHold: a stuck
	// worker then cannot hold for ever. Default 0: no limit.
	MaxHold time.Duration
	// MaxIdle ends a lock whose holder has not called Lock.Progress for so long, with cause
	// ErrIdle: a worker that is stuck then does not hold for ever, and one that is slow may. At
	// least 100 ms and at most MaxHold. Default 0: no limit, and no call of Progress is needed.
	MaxIdle time.Duration
	// PollMin and PollMax bound the pause between two polls of the keys that Lock waits for. A poll
	// is one statement, however many keys and waiters there are. Defaults 10 ms and 250 ms. Polling
	// backs off from a key the longer its holder has had it (every quarter of that time), and polls
	// when the holder's lease expires. Of n processes that wait for a key which stays held, each
	// pauses up to n times PollMax, at most 4 s: together they poll it once every PollMax.
	PollMin, PollMax time.Duration
	// Hints says whether a client notifies other processes of a release, and listens for theirs.
	// Default HintsOn. Polling guarantees progress; notifications only reduce latency. PostgreSQL has
	// LISTEN and NOTIFY, SQLite a counter of commits; MySQL and MariaDB KILL QUERY.
	Hints Hints
	// WatchEvery is the time between two listings of Watch, while a call watches. Default 1 s, at
	// least 10 ms.
	WatchEvery time.Duration
	// HandOvers bounds for how long a client keeps a key among its own waiters, handing it from one
	// to the next in one statement. After so many grants in a row, and at least PollMax, the client
	// releases the key, and other processes have 1.5 × PollMin to attempt it, if any wait. Default 16.
	// Other processes poll every PollMax at the slowest, so that a shorter time takes nothing from
	// them. Where a release can wake one process (PostgreSQL, MySQL, MariaDB), a client keeps a key
	// for which others wait for 3 × PollMin among its own waiters, and one that locks, unlocks and
	// locks again at once for PollMin.
	HandOvers int
	// Strategy is what an acquire tries first. Default Update.
	Strategy Strategy
	// Fair serves waiters in order across processes: by Priority, then by arrival. Each waiter has
	// a ticket in the database, and a holder passes the key to the head of the queue. A wait costs
	// a few writes, where it costs none otherwise. If any client of a key is not Fair, it jumps the
	// queue. A waiter without a heartbeat for its TTL is passed over, because its process has died.
	Fair bool
	// Reentrant makes every call Reentrant; see the option.
	Reentrant bool
	// Identity tells an operator and other callers which program holds a key: in HeldError, Waiting
	// and Inspect, and with SQL before the note. At most 128 bytes of UTF-8 without control
	// characters. Default host/pid/program, cut to 128 bytes. Clients with the same identity are
	// different owners. On PostgreSQL the client's sessions have it in their application_name, unless
	// you have set one.
	Identity string
	// Debug keeps the call stack of each lock, for Hooks.Leaked, DeadlockError and the log. It
	// costs some microseconds and 300 bytes for each lock.
	Debug bool
	// Connections is how many connections of the pool the client keeps to itself at most: its pinned
	// connections. Open makes all of them, and one that has run nothing for a minute is closed, except
	// the last. Default 3, or all but one of a smaller pool, but at least 2; at most 1,000. It is 1 on
	// SQLite, whose file has a single write lock.
	Connections int
	// EvictAfter is how long a transaction may keep an expired key that another client wants. That
	// client then has the server end the transaction's session, which rolls it back. A client that
	// vanishes inside a transaction that fences would otherwise keep its key until the server's TCP
	// keepalive, two hours by default. The transaction of a live holder is ended likewise: make
	// EvictAfter longer than your longest fenced transaction. Only sessions of the same database
	// user are ended, and only if their transaction is that old. Default 30 s, at least 1 s;
	// negative: no session is ended.
	//
	// MySQL needs performance_schema and SELECT on it, MariaDB PROCESS: Open warns where that is
	// missing. A prepared transaction has no session: HeldError.Blocked names what ends it. On
	// SQLite, and with a single pinned connection, it does nothing.
	EvictAfter time.Duration
	// RequireSync has Open refuse a server that would acknowledge a commit that no other server has:
	// a failover could then forget a grant, so that its holder loses the lock before its deadline.
	// Tokens grow in either case. Each new connection of the client is checked, so that a failover to
	// such a server ends its calls with ErrNotSynchronous until another server, or a changed setting,
	// lets them go on. It costs no statement besides.
	//
	// PostgreSQL needs synchronous_standby_names, a synchronous standby that is connected, and
	// synchronous_commit other than local; its user must be a member of pg_read_all_stats. MySQL and
	// MariaDB need semi-synchronous replication with a replica that acknowledges, MySQL alternatively
	// a group with two members. SQLite, memory and postgres.Pooled are refused with ErrUnsupported.
	// A change of the settings while a connection lasts is not seen. See docs/failover.md.
	RequireSync bool
	// DurableRelease has Unlock wait until the release is as durable as a grant. Default: on
	// PostgreSQL, and on SQLite in WAL mode, it does not wait. A crash or a failover of the server
	// soon after Unlock (on SQLite: a crash of the machine) can then undo the release, so that the
	// key is locked for the rest of its TTL. No grant is less durable for it, and the next grant
	// makes the release durable. docs/settings.md says how soon. On MySQL and MariaDB every release
	// waits. A store of OpenTable keeps to what OpenTable was given, and New refuses another.
	DurableRelease bool
	// Reaper says when dead rows are removed.
	Reaper ReaperConfig
	// Trace has the client write what becomes of its locks into a table. Default: off.
	Trace TraceConfig
	// Logger gets warnings: weak settings found by Open, failed renewals, lost locks. Default
	// slog.Default(). Its handler is called by one goroutine of the client, so that one that blocks
	// holds up no lock. 65,536 lines and calls of hooks wait for it at most: more are dropped,
	// which Stats.Untold counts and the next line tells. Close waits for 2 s for those that are
	// left, and Open for 1 s for its own.
	Logger *slog.Logger
	// Hooks are called at events; see Hooks.
	Hooks Hooks
}

// TraceConfig configures the trace: a table of events that Client.Trace and the command
// rowlock history list. The zero value is off, and sends nothing.
//
// A client keeps its events in memory and writes them in batches, 1 s after the first of them: that
// is what a killed process takes with it. No lock waits for the trace. While the table cannot
// be written, the client keeps up to Buffer events and then drops: Stats.TraceDropped, and a row in
// the table once it can be written again, say how many. What a batch with an unknown outcome had
// counts as dropped.
type TraceConfig struct {
	// On turns it on.
	On bool
	// Retention is how long an event is kept. Default 72 h, at least 1 min. One client with On and
	// without Reaper.Off is elected to remove what is older, as often and in such batches as Reaper
	// says, by its own Retention: give all clients the same.
	Retention time.Duration
	// Events are the kinds to write. Default EventGranted, EventHandedOver, EventExpired, EventLost,
	// EventMoved, EventRenewedLate and EventWaitedLong. EventReleased can be added, for twice the
	// rows. Forced releases have records of their own, which the trace lists in any case.
	Events []lease.EventKind
	// LongWait is how long a call must have waited for EventWaitedLong. Default 5 s.
	LongWait time.Duration
	// Buffer is how many events are kept in memory, of about 150 bytes each. Default 16,384, at least
	// 100.
	Buffer int
}

// traced are the kinds that a client writes unless it is told others. A release is left out: the
// next grant shows it, and every lock would have two rows.
var traced = []lease.EventKind{
	lease.EventGranted, lease.EventHandedOver, lease.EventExpired, lease.EventLost, lease.EventMoved,
	lease.EventRenewedLate, lease.EventWaitedLong,
}

func (t TraceConfig) kinds() trace.Kinds {
	if len(t.Events) == 0 {
		return trace.Of(traced...)
	}
	return trace.Of(t.Events...)
}

func (t TraceConfig) withDefaults() TraceConfig {
	t.Retention = cmp.Or(t.Retention, 72*time.Hour)
	t.LongWait = cmp.Or(t.LongWait, 5*time.Second)
	t.Buffer = cmp.Or(t.Buffer, 16384)
	return t
}

func (t TraceConfig) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: Trace."+format, append([]any{lease.ErrConfig}, args...)...)
	}
	switch {
	case t.Retention < time.Minute:
		return bad("Retention (%s) must be at least 1m; leave it 0 for 72h", t.Retention)
	case t.LongWait < 0:
		return bad("LongWait (%s) is negative; leave it 0 for 5s", t.LongWait)
	case t.Buffer < 100:
		return bad("Buffer (%d) must be at least 100 events; leave it 0 for 16384", t.Buffer)
	}
	for _, k := range t.Events {
		if k != lease.EventReleased && !slices.Contains(traced, k) {
			return bad("Events has %q, which clients do not write: leave it out", k)
		}
	}
	return nil
}

// Hints says whether a client sends notifications and listens for them.
type Hints uint8

const (
	// HintsOn uses what the store has.
	HintsOn Hints = iota
	// HintsOff uses polls alone.
	HintsOff
)

const minTTL = 100 * time.Millisecond

// withDefaults fills in zero values and checks how the values stand to each other.
func (c Config) withDefaults() (Config, error) {
	for name, d := range map[string]time.Duration{
		"TTL": c.TTL, "Margin": c.Margin, "RenewEvery": c.RenewEvery, "MaxHold": c.MaxHold,
		"MaxIdle": c.MaxIdle,
		"PollMin": c.PollMin, "PollMax": c.PollMax, "WatchEvery": c.WatchEvery,
		"Reaper.Every": c.Reaper.Every, "Reaper.Retention": c.Reaper.Retention,
	} {
		if d < 0 {
			return c, fmt.Errorf("%w: %s (%s) is negative; leave it 0 for the default",
				lease.ErrConfig, name, d)
		}
	}
	c.TTL = cmp.Or(c.TTL, 30*time.Second)
	c.Margin = cmp.Or(c.Margin, min(max(c.TTL/10, 500*time.Millisecond), c.TTL/3))
	c.RenewEvery = cmp.Or(c.RenewEvery, c.TTL/3)
	c.PollMin = cmp.Or(c.PollMin, 10*time.Millisecond)
	c.PollMax = cmp.Or(c.PollMax, max(250*time.Millisecond, c.PollMin))
	c.WatchEvery = cmp.Or(c.WatchEvery, time.Second)
	c.HandOvers = cmp.Or(c.HandOvers, 16)
	c.EvictAfter = cmp.Or(c.EvictAfter, 30*time.Second)
	c.Trace = c.Trace.withDefaults()
	c.Identity = cmp.Or(c.Identity, adapter.DefaultIdentity())
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Logger = tell.Logger(c.Logger)
	return c, c.check()
}

func (c Config) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{lease.ErrConfig}, args...)...)
	}
	switch {
	case c.TTL < minTTL:
		return bad("TTL (%s) must be at least %s; a lease must outlast a slow round trip", c.TTL, minTTL)
	case c.Margin >= c.TTL:
		return bad("Margin (%s) must be less than TTL (%s)", c.Margin, c.TTL)
	case c.RenewEvery >= c.TTL:
		return bad("RenewEvery (%s) must be less than TTL (%s); a third of it is usual", c.RenewEvery, c.TTL)
	case c.RenewEvery >= c.TTL-c.Margin:
		return bad("RenewEvery (%s) must be less than TTL − Margin (%s − %s), when the holder stops by itself",
			c.RenewEvery, c.TTL, c.Margin)
	case c.PollMin > c.PollMax:
		return bad("PollMin (%s) must not be more than PollMax (%s)", c.PollMin, c.PollMax)
	case c.WatchEvery < 10*time.Millisecond:
		return bad("WatchEvery (%s) must be at least 10ms", c.WatchEvery)
	case c.EvictAfter > 0 && c.EvictAfter < time.Second:
		return bad("EvictAfter (%s) must be at least 1s; make it negative to end no session", c.EvictAfter)
	case c.MaxHold > 0 && c.MaxHold < minTTL:
		return bad("MaxHold (%s) must be at least %s", c.MaxHold, minTTL)
	case c.MaxIdle > 0 && c.MaxIdle < minTTL:
		return bad("MaxIdle (%s) must be at least %s; a worker cannot show progress at every moment",
			c.MaxIdle, minTTL)
	case c.MaxHold > 0 && c.MaxIdle > c.MaxHold:
		return bad("MaxIdle (%s) must not be more than MaxHold (%s), which ends the lock before",
			c.MaxIdle, c.MaxHold)
	case c.Strategy != Update && c.Strategy != Insert:
		return bad("Strategy (%d) must be Update or Insert", c.Strategy)
	case c.Hints != HintsOn && c.Hints != HintsOff:
		return bad("Hints (%d) must be HintsOn or HintsOff", c.Hints)
	case c.HandOvers < 0:
		return bad("HandOvers (%d) is negative; leave it 0 for the default, or 1 to release after every hold",
			c.HandOvers)
	case c.Connections < 0 || c.Connections > 1000:
		return bad("Connections (%d) must be 0 to 1000; leave it 0 for the default", c.Connections)
	}
	if err := c.Trace.check(); err != nil {
		return err
	}
	return adapter.CheckIdentity(c.Identity)
}
