package optimistic

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// reapBucket raises the floor to the highest token of the dead rows. Then, in the same transaction,
// it deletes the rows that are still dead and not above the floor. The rows are not locked in
// between: one that is taken and released meanwhile has a token above the floor, and stays. The
// write of the floor excludes every transaction that would lock it to count from it; for the others
// see make.
//
// A row that another transaction has locked fails the whole transaction. Then each key is tried by
// itself, and locked ones are left to the next sweep; after two of them, all the rest.
func (d swap) reapBucket(
	ctx context.Context, s *conn.Session, bucket int, keys []string, retention time.Duration,
) (removed int64, err error) {
	removed, err = d.reap(ctx, s, bucket, keys, retention)
	if !d.isConflict(err) || d.OneWriter {
		return removed, err
	}
	locked := 0
	for i := 0; i < len(keys) && locked < 2; i++ {
		n, err := d.reap(ctx, s, bucket, keys[i:i+1], retention)
		switch {
		case d.isConflict(err):
			locked++
		case err != nil:
			return removed, err
		}
		removed += n
	}
	return removed, nil
}

func (d swap) reap(
	ctx context.Context, s *conn.Session, bucket int, keys []string, retention time.Duration,
) (removed int64, err error) {
	err = s.InTx(ctx, func() error {
		removed, err = d.reapIn(ctx, s, bucket, keys, retention)
		return err
	})
	if err != nil {
		removed = 0
	}
	return removed, err
}

func (d swap) reapIn(
	ctx context.Context, s *conn.Session, bucket int, keys []string, retention time.Duration,
) (int64, error) {
	var highest lease.Token
	dead := []any{d.List(keys), conn.Micros(retention)}
	if d.OneWriter { // a transaction that reads first may be unable to write
		if _, err := s.Exec(ctx, d.Text("floor-raise"), 0, bucket); err != nil {
			return 0, err
		}
	}
	if err := s.QueryRow(ctx, d.Text("cas-dead"), dead, &highest); err != nil || highest < 0 {
		return 0, err
	}
	if err := d.raiseFloor(ctx, s, bucket, highest); err != nil {
		return 0, err
	}
	return s.Change(ctx, d.Text("cas-reap"), append(dead, highest)...)
}

// raiseFloor reads the floor back, because to delete a row above a floor that did not rise would
// let its token be granted again.
func (d swap) raiseFloor(ctx context.Context, s *conn.Session, bucket int, to lease.Token) error {
	if _, err := s.Exec(ctx, d.Text("floor-raise"), to, bucket); err != nil {
		return err
	}
	var floor lease.Token
	err := s.QueryRow(ctx, d.Text("cas-floor"), []any{bucket}, &floor)
	if err == nil && floor < to {
		err = fmt.Errorf("%w: the floor of bucket %d did not rise to %d: is there a trigger or a row "+
			"policy on the table?", lease.ErrCorrupt, bucket, to)
	}
	return err
}

// DropDead removes dead tickets one by one, because a batch would have to be locked in order.
func (d swap) DropDead(ctx context.Context, s *conn.Session, tickets []lease.Lease, retention int64) error {
	for _, t := range tickets {
		if _, err := s.Exec(ctx, d.Text("cas-drop-dead"), []byte(t.Key), conn.Bytes(t.Owner),
			retention); err != nil {
			return err
		}
	}
	return nil
}
