package paxosbridge

import (
	"context"
	"errors"
	"fmt"
	"math"
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
//
// A key that cannot be mended keeps no other from it: the error is of the first on each page of 500 records, and says of how many.
func (b *Bridge) Audit(ctx context.Context) error { return b.audit(ctx, math.MaxInt64) }

// audit gives each page so long. All of them together may take as long as there are records.
func (b *Bridge) audit(ctx context.Context, page time.Duration) (failed error) {
	for after := ""; ; {
		records, err := b.auditPage(ctx, after, page)
		failed = errors.Join(failed, err)
		if len(records) < auditPage {
			return failed
		}
		after = records[len(records)-1].Key
	}
}

// auditPage returns no records if one of the stores, rather than a key, is what ails.
func (b *Bridge) auditPage(ctx context.Context, after string, d time.Duration) ([]Record, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	records, err := b.cluster.Records(ctx, after, auditPage)
	if err != nil {
		return nil, fmt.Errorf("records of the cluster: %w", err)
	}
	rows, err := b.rowsOf(ctx, records)
	if err != nil {
		return nil, err
	}
	err = b.mendAll(ctx, records, rows)
	if ctx.Err() != nil {
		return nil, err
	}
	return records, err
}

// reconcile compares one record with its row.
func (b *Bridge) reconcile(ctx context.Context, r Record) error {
	records := []Record{r}
	rows, err := b.rowsOf(ctx, records)
	if err != nil {
		return err
	}
	return b.mendAll(ctx, records, rows)
}

// rowsOf reads the rows of records.
func (b *Bridge) rowsOf(ctx context.Context, records []Record) (map[string]lease.Record, error) {
	keys := make([]string, 0, len(records))
	for _, r := range records {
		if r.Epoch%2 == 1 { // what is even was never opened by a bridge
			keys = append(keys, r.Key)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return b.ask(ctx, keys, "found by the audit")
}

// mendAll compares records with their rows.
func (b *Bridge) mendAll(ctx context.Context, records []Record, rows map[string]lease.Record) (first error) {
	more := 0
	for _, r := range records {
		if r.Epoch%2 == 0 {
			continue
		}
		switch err := b.mend(ctx, r, rows[r.Key]); {
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
		return fmt.Errorf("%w (and %d keys more)", first, more)
	}
	return first
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
		_, err := b.open(ctx, r.Key, epoch)
		return err
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
