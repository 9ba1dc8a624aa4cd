package paxosbridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/late"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// mover moves keys between the table and the cluster. A move has two steps. The first needs the
// lock and cannot be undone. The second needs no lock, so that any process that finds a move half
// done can complete it.
type mover struct {
	table   Table
	cluster Cluster
	cfg     *Config
	routes  *routes
	pending *pendingMoves
	report  *reports
}

func newMover(table Table, waiters lease.Notifier, cluster Cluster, cfg *Config) mover {
	report := newReports(cfg, waiters, cluster)
	return mover{
		table: table, cluster: cluster, cfg: cfg, routes: newRoutes(cfg, table), report: report,
		pending: newPendingMoves(cfg.MoveTimeout, report.announce),
	}
}

// MoveOut moves a key to the cluster, and returns when it can be locked there. It waits for the
// key's holder for at most MoveTimeout. The error says whether the key stayed in the table. If it
// did not, or if that is unknown, the next request for the key completes the move.
func (m *mover) MoveOut(ctx context.Context, key, why string) error {
	if err := cmp.Or(isnil.Context("MoveOut", ctx), lease.CheckKey(key)); err != nil {
		return err
	}
	epoch, err := m.depart(ctx, key, why)
	if err != nil {
		return m.report.stayed(key, "the table", late.Told(ctx, err, lease.ErrBusy))
	}
	second, cancel := m.withoutCancel(ctx)
	defer cancel()
	if err := m.cluster.Open(second, key, epoch); err != nil {
		return m.report.unfinished(key, "has left the table and is not open in the cluster yet",
			late.Told(ctx, err, lease.ErrBusy))
	}
	m.report.moved(second, key, m.cfg.Placement, epoch, why)
	return nil
}

// depart is the first step of a move out. It checks that the cluster answers, because no client
// could lock a key that was given to a cluster that is down. It checks before it acquires the lock
// too: otherwise repeated moves to a cluster that is down would keep a hot key from its clients.
func (m *mover) depart(ctx context.Context, key, why string) (epoch int64, err error) {
	if m.routes.epoch(key) != 0 {
		return 0, fmt.Errorf("%w: it is in the cluster", lease.ErrMoved)
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.MoveTimeout)
	defer cancel()
	if err := m.probe(ctx); err != nil {
		return 0, err
	}
	if gate, ok := adapter.As[adapter.EraGate](m.table); ok {
		if err := gate.MayDepart(ctx, key); err != nil {
			return 0, err
		}
	}
	var sent time.Time
	err = m.pending.firstStep(ctx, m.table, key, 0, func(l lease.Lease) (ok bool, err error) {
		if err := m.probe(ctx); err != nil {
			return false, err
		}
		sent = time.Now()
		epoch, ok, err = m.table.Depart(ctx, l, m.cfg.Placement)
		return ok, ifUnknown(err)
	})
	switch {
	case err == nil:
		m.routes.leave(key, epoch, sent, why)
	case errors.Is(err, lease.ErrMoved): // another process has moved it
		_, failed := m.routes.locate(ctx, key)
		err = oneline.Join(err, failed)
	}
	return epoch, err
}

func (m *mover) probe(ctx context.Context) error {
	if err := m.cluster.Probe(ctx); err != nil {
		return fmt.Errorf("the cluster does not answer: %w", err)
	}
	return nil
}

// MoveBack moves a key back to the table, and returns when it can be locked there. It waits for the
// key's holder for at most MoveTimeout. The error says whether the key stayed in the cluster. If it
// did not, or if that is unknown, the next request for the key completes the move.
func (m *mover) MoveBack(ctx context.Context, key, why string) error {
	if err := isnil.Context("MoveBack", ctx); err != nil {
		return err
	}
	epoch := m.routes.epoch(key)
	if epoch == 0 {
		return fmt.Errorf("rowlock: bridge: %q is not known to be in the cluster", key)
	}
	sealing, cancel := context.WithTimeout(ctx, m.cfg.MoveTimeout)
	defer cancel()
	err := m.pending.firstStep(sealing, m.cluster, key, epoch, func(l lease.Lease) (bool, error) {
		ok, err := m.cluster.Seal(sealing, l)
		return ok, ifUnknown(err)
	})
	var r *RecordError
	if errors.As(err, &r) && r.Epoch == epoch && r.Sealed {
		err = nil // another process has made this step; the second is still to be made
	}
	if err != nil {
		return m.report.stayed(key, "the cluster", late.Told(ctx, err, lease.ErrBusy))
	}
	second, cancel := m.withoutCancel(ctx)
	defer cancel()
	return late.Told(ctx, m.finishReturn(second, key, epoch, why), lease.ErrBusy)
}

// finishReturn is the second step of a move back. Its caller knows that the epoch is sealed.
func (m *mover) finishReturn(ctx context.Context, key string, epoch int64, why string) error {
	ok, err := m.table.Return(ctx, key, m.cfg.Placement, epoch)
	if err == nil {
		m.routes.comeBack(key, epoch, time.Now())
	}
	switch {
	case err != nil:
		return m.report.unfinished(key, "is sealed in the cluster and not back in the table yet", err)
	case ok:
		m.report.moved(ctx, key, lease.PlacementTable, epoch+1, why)
	}
	return nil
}

// withoutCancel is the context of a second step. Until that is made no client can lock the key, so
// that the step outlives ctx.
func (m *mover) withoutCancel(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), m.cfg.MoveTimeout)
}

// ifUnknown marks the error of a first step that may have been made.
func ifUnknown(err error) error {
	if errors.Is(err, lease.ErrUnknown) {
		return unknownStep{err}
	}
	return err
}
