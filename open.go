package rowlock

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/internal/tenant"
	"github.com/rowlockdb/rowlock/lease"
)

// DB is what Open needs of a pool: *sql.DB and *sqlx.DB have it. The caller closes it, after the
// client.
type DB = dialect.DB

// Table is the store of a client made by Open: for a bridge, or for a store of your own that stands
// before it. Close it after the client. Package lease says what it can do.
type Table = lease.Table

// OpenTable returns the store on the tables in db, checked as by Open, for New. Of cfg it uses TTL,
// Strategy, Connections, EvictAfter, RequireSync, DurableRelease and Logger. It takes 30 s at most.
func OpenTable(db DB, d dialect.Dialect, cfg *Config) (Table, error) {
	return OpenTableContext(context.Background(), db, d, cfg)
}

// OpenTableContext is OpenTable bounded by ctx, as OpenContext is.
func OpenTableContext(ctx context.Context, db DB, d dialect.Dialect, cfg *Config) (Table, error) {
	full, err := complete("rowlock.OpenTable", db, d, cfg)
	if err != nil {
		return nil, err
	}
	return openTable(ctx, db, d, full)
}

// Open returns a client on the tables in db. It takes Config.Connections connections of the pool
// for itself, checks that the server and the tables can be trusted with locks, and runs every kind
// of statement once. With Config.RequireSync it also checks that a commit waits for a replica. It
// creates nothing: schema.Migrate makes the tables, or your own migration tool. It takes 30 s at
// most, even if the server does not answer.
func Open(db DB, d dialect.Dialect, cfg *Config) (*Client, error) {
	return OpenContext(context.Background(), db, d, cfg)
}

// OpenContext is Open, and returns the error of ctx if ctx ends before the client is open. Without
// a deadline in ctx it takes 30 s at most. The client goes on after ctx has ended; Close ends it.
func OpenContext(ctx context.Context, db DB, d dialect.Dialect, cfg *Config) (*Client, error) {
	full, err := complete("rowlock.Open", db, d, cfg)
	if err != nil {
		return nil, err
	}
	store, err := openTable(ctx, db, d, full)
	if err != nil {
		return nil, err
	}
	c, err := start(store, store, full)
	if err != nil {
		return nil, oneline.Join(err, store.Close())
	}
	c.tx.pool = db
	return c, nil
}

func complete(caller string, db DB, d dialect.Dialect, cfg *Config) (Config, error) {
	if err := isnil.Open(caller, db, d); err != nil {
		return Config{}, err
	}
	return cmp.Or(cfg, new(Config)).withDefaults()
}

func openTable(ctx context.Context, db DB, d dialect.Dialect, full Config) (Table, error) {
	opened, err := adapter.OpeningOf(d).Table(ctx, db, adapter.OpenOptions{
		Strategy: full.Strategy, TTL: full.TTL, Connections: full.Connections, Evicts: full.EvictAfter > 0,
		RequireSync: full.RequireSync, DurableRelease: full.DurableRelease, Identity: full.Identity,
		Began: func(start Token) {
			full.Logger.Info("rowlock: the database's server was started or restored, or another has taken "+
				"its place; tokens go on above all that it may have forgotten",
				"server", d.Name(), "tokens_above", start)
		},
	})
	if err != nil {
		return nil, err
	}
	tell.Warn(ctx, full.Logger, opened.Server, opened.Warnings)
	return opened.Store, nil
}

// maxNamespace is the longest name of a namespace in bytes.
const maxNamespace = 64

// Quota limits a namespace within one client. 0 is no limit.
type Quota struct {
	// Held is how many locks there may be at a time, those that calls are waiting for included.
	Held int
	// Waiting is how many calls of Lock, LockAll and Do may be under way at a time. TryLock does
	// not count.
	Waiting int
}

// Namespace returns a client for one tenant. Its keys are its own: the key k of namespace "billing"
// is the key "billing/k" of c, in the tables, in errors, hooks and logs, and for clients that have
// no namespace. Lock.Key, Watch and Inspect of the namespace name k alone. Locks of a namespace are
// like any others, on c's connections and kept alive by its watchdog; settings are c's.
//
// A call that would exceed the quota returns a *QuotaError before anything is sent, and
// disturbs no other namespace. The quota counts what this client holds, and nothing of other
// processes: with four processes a tenant can hold four times as much. A lock counts until Unlock,
// its loss or MaxHold. For a limit over processes, take a permit of a semaphore in the namespace
// (package semaphore) before the lock.
//
// The name has 1 to 64 bytes and no "/", so that no namespace is part of another unless it was made
// from it: c.Namespace("a", q).Namespace("b", q) is "a/b/", and counts in both. Every call with the
// same name shares one count, and must give the same quota. Close of a namespace does nothing.
//
// A resource that tenants share is a key of c, and no quota counts its locks.
func (c *Client) Namespace(name string, q Quota) (*Client, error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{lease.ErrConfig}, args...)...)
	}
	switch {
	case name == "" || len(name) > maxNamespace:
		return nil, bad("the namespace %q has %d bytes; a name has 1 to %d", name, len(name), maxNamespace)
	case strings.Contains(name, tenant.Separator):
		return nil, bad("the namespace %q has a %q, which ends the name in a key: leave it out, or make "+
			"a namespace of a namespace", name, tenant.Separator)
	case q.Held < 0 || q.Waiting < 0:
		return nil, bad("the quota %+v of namespace %q is negative; 0 is no limit", q, name)
	}
	if err := lease.CheckKey(c.space.Full(name)); err != nil {
		return nil, err
	}
	space, err := c.spaces.In(c.space, name, tenant.Quota(q))
	if err != nil {
		return nil, err
	}
	return &Client{core: c.core, space: space}, nil
}

// KeyPrefix is what stands before this client's keys in the tables: "billing/" in namespace
// "billing", and "" without a namespace.
func (c *Client) KeyPrefix() string { return c.space.Full("") }
