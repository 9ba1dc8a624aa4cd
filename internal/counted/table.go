// Package counted counts what is asked of a table, for tests and benchmarks of what stands in front
// of it.
package counted

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// Table counts the calls by which keys are locked and waited for. Moves and sweeps are not counted.
type Table struct {
	paxosbridge.Table
	registry lease.Registry

	reads, writes atomic.Int64
}

// Counted is a table whose calls can be counted.
type Counted interface {
	paxosbridge.Table
	lease.Registry
}

// Count counts the calls to a table.
func Count(table Counted) *Table {
	return &Table{Table: table, registry: table}
}

// Calls returns how many calls there were since the last Reset, of those that only read and of
// those that may write.
func (t *Table) Calls() (reads, writes int64) { return t.reads.Load(), t.writes.Load() }

// Reset begins to count anew.
func (t *Table) Reset() {
	t.reads.Store(0)
	t.writes.Store(0)
}

// Unwrap keeps what else the table can do.
func (t *Table) Unwrap() lease.Store { return t.Table }

// AcquireAll writes.
func (t *Table) AcquireAll(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	all, ok := adapter.As[lease.AllAcquirer](t.Table)
	if !ok {
		return nil, fmt.Errorf("%w: to acquire several keys at once", lease.ErrUnsupported)
	}
	t.writes.Add(1)
	return all.AcquireAll(ctx, reqs)
}

// Inspect reads.
func (t *Table) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	t.reads.Add(1)
	return t.Table.Inspect(ctx, f)
}

// Acquire writes.
func (t *Table) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	t.writes.Add(1)
	return t.Table.Acquire(ctx, reqs)
}

// Renew writes.
func (t *Table) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	t.writes.Add(1)
	return t.Table.Renew(ctx, reqs)
}

// Release writes.
func (t *Table) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	t.writes.Add(1)
	return t.Table.Release(ctx, leases)
}

// HandOver writes.
func (t *Table) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	t.writes.Add(1)
	return t.Table.HandOver(ctx, items)
}

// Register writes.
func (t *Table) Register(ctx context.Context, process lease.Owner, identity string, keys []string, d time.Duration) error {
	t.writes.Add(1)
	return t.registry.Register(ctx, process, identity, keys, d)
}

// Unregister writes.
func (t *Table) Unregister(ctx context.Context, process lease.Owner, keys []string) error {
	t.writes.Add(1)
	return t.registry.Unregister(ctx, process, keys)
}

// Awaited reads.
func (t *Table) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	t.reads.Add(1)
	return t.registry.Awaited(ctx, process, keys)
}
