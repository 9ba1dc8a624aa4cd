package paxosbridge

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

const (
	auditEvery = time.Minute
	auditPage  = 500
)

// Audit compares what the cluster remembers with the table, and mends what does not fit: moves that were left half done, moves that the
// database has forgotten because it failed over to a replica that lagged, and records that are older than a return by force. It
// only ever raises epochs. New does it first, and then every minute somebody does.
//
// Between such a failover and the audit the table may grant a key that the cluster has granted too, and a move that was just being
// finished may be found by the next audit only: rowlock asks for replication that loses nothing that was acknowledged. What holds even
// then is that tokens grow in each home, that fenced data refuse what is older than they have seen, and that no key is stuck.
func (b *Bridge) Audit(ctx context.Context) error {
	for after := ""; ; {
		records, err := b.cluster.Records(ctx, after, auditPage)
		if err != nil {
			return fmt.Errorf("records of the cluster: %w", err)
		}
		if err := b.reconcile(ctx, records); err != nil {
			return err
		}
		if len(records) < auditPage {
			return nil
		}
		after = records[len(records)-1].Key
	}
}

// reconcile compares records with their rows.
func (b *Bridge) reconcile(ctx context.Context, records []Record) error {
	keys := make([]string, 0, len(records))
	for _, r := range records {
		if r.Epoch%2 == 1 { // what is even was never opened by a bridge
			keys = append(keys, r.Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	rows, err := b.ask(ctx, keys, "found by the audit")
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Epoch%2 == 1 {
			if err := b.mend(ctx, r, rows[r.Key]); err != nil {
				return fmt.Errorf("%q: %w", r.Key, err)
			}
		}
	}
	return nil
}

// mend compares one record with its row, which is zero if there is none.
func (b *Bridge) mend(ctx context.Context, r Record, row lease.Record) error {
	epoch := lease.Epoch(row.Token)
	switch {
	case epoch < r.Epoch && r.Sealed:
		// Forgotten, or swept since it came back, for which the row is made anew above everything that it has granted.
		_, err := b.recall(ctx, r.Key, lease.HomeTable, r.Epoch+1, row)
		return err
	case epoch < r.Epoch: // forgotten: only what had left was opened, and what has left is not swept
		ok, err := b.recall(ctx, r.Key, b.cfg.Home, r.Epoch, row)
		switch {
		case err != nil:
			return err
		case ok:
			b.routes.set(r.Key, r.Epoch, time.Now(), "recalled")
		case row.Key == "": // the table's next token is above this epoch, or there is a row by now, which the next audit looks at
			return b.supersedeIfAbsent(ctx, r)
		}
	case row.Home == returning:
		return b.finishForce(ctx, row)
	case row.Home == b.cfg.Home && epoch == r.Epoch && r.Sealed:
		return b.finishReturn(ctx, r.Key, r.Epoch, "found sealed by the audit")
	case row.Home == b.cfg.Home && epoch > r.Epoch:
		return b.cluster.Open(ctx, r.Key, epoch)
	case epoch > r.Epoch && !r.Sealed: // taken back by force while the cluster was away
		return b.cluster.Supersede(ctx, r.Key, r.Epoch+1)
	}
	return nil
}

// supersedeIfAbsent closes an epoch whose row has been lost, where the floor that the row would have to be above is above the epoch.
func (b *Bridge) supersedeIfAbsent(ctx context.Context, r Record) error {
	rows, err := b.rows(ctx, []string{r.Key})
	if _, ok := rows[r.Key]; ok || err != nil {
		return err
	}
	return b.cluster.Supersede(ctx, r.Key, r.Epoch+1)
}

func (b *Bridge) recall(ctx context.Context, key string, home int, epoch int64, row lease.Record) (bool, error) {
	ok, err := b.table.Recall(ctx, key, home, epoch)
	if err != nil || !ok || row.Key == "" && home == lease.HomeTable {
		return ok, err
	}
	b.cfg.Logger.WarnContext(ctx, "paxosbridge: the database had forgotten a move; is its replication allowed to lose what it has acknowledged?",
		"key", key, "epoch", epoch, "row", lease.Epoch(row.Token))
	if h := b.cfg.Hooks.Recalled; h != nil {
		h(key, epoch)
	}
	return ok, nil
}
