package table

import (
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Options configure a Store.
type Options struct {
	// Began is called after the store has begun an era of the table; see package era. May be nil.
	Began func(start lease.Token)
	// Connections is how many connections to keep.
	Connections int
	// Idle is for how long one of them stays open that runs nothing; 0 means a minute.
	Idle time.Duration
	// Strategy is what an acquire tries first.
	Strategy adapter.Strategy
	// Timeout bounds one statement.
	Timeout time.Duration
	// Evicts has Open check whether this user may do what Evict does, and warn if not.
	Evicts bool
	// Limit bounds a call that asks for no lease and whose ctx has no deadline, to within a
	// second; 0 means 30 s. The TTL bounds a call that asks for leases.
	Limit time.Duration
	// Hints lets Listen borrow one more connection of the pool while it listens.
	Hints bool
	// Watch is how often Listen checks whether the database has changed, if the server sends no
	// messages; 0 means 10 ms.
	Watch time.Duration
	// TraceNeeds is how many connections the pool must have for the trace, if it has fewer; 0: it
	// has enough. The trace borrows one more than the pinned connections and Listen.
	TraceNeeds int
	// RequireSync has every pinned connection refuse a server that would acknowledge a commit that no
	// other server has.
	RequireSync bool
	// Relax has a release wait for no disk and no standby, where a session can do that for one
	// transaction.
	Relax bool
	// Optimistic says that the dialect locks no row that it only reads. The queue does, so Open
	// does not try it and callers must not use it. A user who may not raise floors or delete is
	// let in, but cannot sweep.
	Optimistic bool
}

// rehearsalTTL is that of what an opening tries out.
const rehearsalTTL = 30 * time.Second

func vanished(what string) error {
	return fmt.Errorf("%w: %s: is there a trigger or a row policy on the table?", lease.ErrCorrupt,
		what)
}
