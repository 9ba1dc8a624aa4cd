package rowlock

import (
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/internal/tenant"
	"github.com/rowlockdb/rowlock/lease"
)

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
