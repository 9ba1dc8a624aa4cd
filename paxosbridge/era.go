package paxosbridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

// audited is a table that grants nothing in a new era before an audit: a server that has forgotten
// grants may have forgotten moves, and would grant a key that the cluster has granted.
type audited struct {
	Table
	gate  seam.EraGate
	audit func(context.Context) error

	mu       sync.Mutex // held by the one that audits
	admitted int64
}

// holdEras returns a table that asks for an audit in each new era, until free is called; or table
// itself if it has no eras.
func holdEras(table Table, audit func(context.Context) error) (held Table, free func()) {
	gate, ok := seam.As[seam.EraGate](table)
	if !ok {
		return table, func() {}
	}
	t := &audited{Table: table, gate: gate, audit: audit, admitted: gate.Era()}
	gate.AdmitEras(t.admitted)
	return t, func() { gate.AdmitEras(-1) }
}

// Unwrap has the table's other abilities be found.
func (t *audited) Unwrap() lease.Store { return t.Table }

// Acquire asks again after the audit.
func (t *audited) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return t.ask(ctx, func() ([]lease.Acquired, error) { return t.Table.Acquire(ctx, reqs) })
}

// HandOver asks again after the audit.
func (t *audited) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	return t.ask(ctx, func() ([]lease.Acquired, error) { return t.Table.HandOver(ctx, items) })
}

// AcquireAll asks again after the audit.
func (t *audited) AcquireAll(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	all, ok := seam.As[lease.AllAcquirer](t.Table)
	if !ok {
		return nil, fmt.Errorf("%w: to acquire several keys at once", lease.ErrUnsupported)
	}
	return t.ask(ctx, func() ([]lease.Acquired, error) { return all.AcquireAll(ctx, reqs) })
}

// ask repeats the whole request: what was granted of it the first time is answered so again.
func (t *audited) ask(
	ctx context.Context, request func() ([]lease.Acquired, error),
) ([]lease.Acquired, error) {
	for range hops {
		answers, err := request()
		held := func(a lease.Acquired) bool { return errors.Is(a.Err, seam.ErrNewEra) }
		if !errors.Is(err, seam.ErrNewEra) && !slices.ContainsFunc(answers, held) {
			return answers, err
		}
		if err := t.admit(ctx); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: the database fails over again and again", lease.ErrBusy)
}

// admit audits once, however many wait for it.
func (t *audited) admit(ctx context.Context) error {
	began := t.gate.Era()
	t.mu.Lock()
	defer t.mu.Unlock()
	era := t.gate.Era()
	if t.admitted >= began {
		return nil
	}
	if err := t.audit(ctx); err != nil {
		return fmt.Errorf("%w: the database's history is new, as after a failover, and nothing is "+
			"granted before an audit of the cluster's keys, which has failed: %w", lease.ErrBusy, err)
	}
	t.admitted = era
	t.gate.AdmitEras(era)
	return nil
}
