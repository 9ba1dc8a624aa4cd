package paxosbridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// resolve finds out where a key is whose request was refused, and completes a move that is half
// done.
func (m *mover) resolve(ctx context.Context, key string, refused error) (lease.Record, error) {
	var r *RecordError
	var err error
	switch {
	case !errors.As(refused, &r):
	case r.Epoch == r.Asked && r.Sealed:
		err = m.finishReturn(ctx, key, r.Epoch, "found sealed")
	case r.Epoch >= r.Asked:
		err = m.reconcile(ctx, r.Record)
	default:
		var opened bool
		if opened, err = m.open(ctx, key, r.Asked); opened && err == nil {
			m.report.moved(ctx, key, m.cfg.Placement, r.Asked, "found half moved")
			return lease.Record{Placement: m.cfg.Placement}, nil
		}
	}
	if err != nil {
		return lease.Record{}, err
	}
	row, err := m.routes.locate(ctx, key)
	if err == nil && row.Placement == returning {
		if back, err := m.finishForce(ctx, row); back || err != nil {
			return lease.Record{}, err
		}
	}
	return row, err
}

// open opens a key's record because a read of the row said that the key has left in this epoch.
// That commit may be on one server alone, and a failover may lose it. Then the table would grant
// the key while the cluster does, so that the move is confirmed first. opened false says that the
// key is not away in this epoch.
func (m *mover) open(ctx context.Context, key string, epoch int64) (opened bool, err error) {
	ok, err := m.table.Confirm(ctx, key, m.cfg.Placement, epoch)
	switch {
	case err != nil:
		return false, fmt.Errorf("rowlock: bridge: the row of %q says that it left the table; the "+
			"database has not confirmed that, so the record stays closed: %w", key, err)
	case !ok:
		m.routes.comeBack(key, epoch, time.Now())
		return false, nil
	}
	return true, m.cluster.Open(ctx, key, epoch)
}

// reconcile compares one record with its row, and repairs what does not fit.
func (m *mover) reconcile(ctx context.Context, r Record) error {
	rows, err := m.rowsOf(ctx, r)
	if err != nil {
		return err
	}
	return m.repairAll(ctx, rows, r)
}

// rowsOf reads the rows of records that a bridge has opened: those of odd epochs.
func (m *mover) rowsOf(ctx context.Context, records ...Record) (map[string]lease.Record, error) {
	keys := make([]string, 0, len(records))
	for _, r := range records {
		if r.Err == nil && r.Epoch%2 == 1 {
			keys = append(keys, r.Key)
		}
	}
	return m.routes.read(ctx, keys, "found by the audit")
}

// repairAll repairs records. Its error is that of the first key, and says how many others failed.
func (m *mover) repairAll(
	ctx context.Context, rows map[string]lease.Record, records ...Record,
) (first error) {
	more := 0
	for _, r := range records {
		if r.Err == nil && r.Epoch%2 == 0 {
			continue
		}
		row := rows[r.Key]
		err := cmp.Or(r.Err, row.Err)
		if err == nil {
			err = m.repair(ctx, r, row)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return fmt.Errorf("%q: %w", r.Key, err)
		case first == nil:
			first = fmt.Errorf("%q: %w", r.Key, err)
		default:
			more++
		}
	}
	if more > 0 {
		return fmt.Errorf("%w (and %d more keys)", first, more)
	}
	return first
}

// repair compares a record with its row, which is zero if there is none, and only ever raises
// epochs.
func (m *mover) repair(ctx context.Context, r Record, row lease.Record) error {
	epoch := lease.Epoch(row.Token)
	switch {
	case epoch < r.Epoch && r.Sealed:
		// Forgotten, or swept since it came back. The row is made anew above every token granted.
		_, err := m.recall(ctx, r.Key, lease.PlacementTable, r.Epoch+1, row)
		return err
	case epoch < r.Epoch:
		// Forgotten: a record is opened only after its key has left, and such a row is not swept.
		return m.recallOut(ctx, r, row)
	case row.Placement == returning:
		_, err := m.finishForce(ctx, row)
		return err
	case row.Placement == m.cfg.Placement && epoch == r.Epoch && r.Sealed:
		return m.finishReturn(ctx, r.Key, r.Epoch, "found sealed by the audit")
	case row.Placement == m.cfg.Placement && epoch > r.Epoch:
		_, err := m.open(ctx, r.Key, epoch)
		return err
	case epoch > r.Epoch && !r.Sealed: // taken back by force while the cluster was away
		return m.cluster.Supersede(ctx, r.Key, r.Epoch+1)
	}
	return nil
}

// recallOut puts a key whose move out was forgotten into the cluster again. If the row is gone and
// the floor that a new row starts above is higher than the epoch, it seals the record instead.
func (m *mover) recallOut(ctx context.Context, r Record, row lease.Record) error {
	sent := time.Now()
	ok, err := m.recall(ctx, r.Key, m.cfg.Placement, r.Epoch, row)
	switch {
	case err != nil:
		return err
	case ok:
		m.routes.leave(r.Key, r.Epoch, sent, "recalled")
		return nil
	case row.Key != "":
		return nil
	}
	rows, err := m.routes.rows(ctx, []string{r.Key})
	if _, ok := rows[r.Key]; ok || err != nil {
		return err // the next audit compares the row
	}
	return m.cluster.Supersede(ctx, r.Key, r.Epoch+1)
}

func (m *mover) recall(
	ctx context.Context, key string, placement int, epoch int64, row lease.Record,
) (bool, error) {
	ok, err := m.table.Recall(ctx, key, placement, epoch)
	swept := row.Key == "" && placement == lease.PlacementTable
	if err == nil && ok && !swept {
		m.report.recalled(ctx, key, epoch, row)
	}
	return ok, err
}
