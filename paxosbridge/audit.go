package paxosbridge

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/late"
	"github.com/rowlockdb/rowlock/internal/oneline"
)

const (
	auditEvery = time.Minute
	auditPage  = 500
)

// Audit compares the cluster's records with the table's rows, and repairs what does not fit: moves
// that are half done, moves that the database forgot in a failover to a replica that lagged, and
// records older than a return by force. It only ever raises epochs. New runs it first, and a bridge
// runs it every minute, or every Refresh if that is longer.
//
// A table that begins an era after such a failover, as that of rowlock.OpenTable does, grants
// nothing through a bridge before an audit. With another table, or for clients without a bridge,
// the table may until the audit grant a key that the cluster has granted too. Any table may until
// the next audit, if the second step of a forgotten move out is made after the first one. So
// rowlock asks for replication that loses no acknowledged commit. Even without it, the cluster's
// tokens grow and those of a table with eras, fenced data refuse a token older than one they have
// seen, and no key is stuck.
//
// A key that cannot be repaired does not keep the audit from other keys. The error is that of the
// first such key on each page of 500 records, and says how many others failed.
func (m *mover) Audit(ctx context.Context) error {
	if err := isnil.Context("Audit", ctx); err != nil {
		return err
	}
	return m.audit(ctx, math.MaxInt64)
}

// audit bounds each page by timeout. All pages together may take as long as there are records.
func (m *mover) audit(ctx context.Context, timeout time.Duration) (failed error) {
	for after := ""; ; {
		records, err := m.auditPage(ctx, after, timeout)
		failed = oneline.Join(failed, late.Told(ctx, err, nil))
		if len(records) < auditPage {
			return failed
		}
		after = records[len(records)-1].Key
	}
}

// auditPage returns no records if one of the stores fails, rather than a key.
func (m *mover) auditPage(ctx context.Context, after string, timeout time.Duration) ([]Record, error) {
	// What an old primary still has must not hide what the new one has forgotten.
	ctx, cancel := context.WithTimeout(adapter.ReadNewest(ctx), timeout)
	defer cancel()
	records, err := m.cluster.Records(ctx, after, auditPage)
	if err != nil {
		return nil, fmt.Errorf("list the cluster's records: %w", err)
	}
	rows, err := m.rowsOf(ctx, records...)
	if err != nil {
		return nil, err
	}
	err = m.repairAll(ctx, rows, records...)
	if ctx.Err() != nil {
		return nil, err
	}
	return records, err
}

// auditEra audits, and admits an era that has begun: an idle bridge keeps no other client of its
// table waiting.
func (m *mover) auditEra(ctx context.Context) error {
	if t, ok := m.table.(*audited); ok {
		if begun, err := t.enter(ctx); begun {
			return err
		}
	}
	return m.audit(ctx, m.cfg.MoveTimeout)
}
