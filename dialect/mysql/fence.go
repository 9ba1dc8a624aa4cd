package mysql

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// fence locks the row, and extends the lease in a second statement when a third of its TTL has
// gone. One statement would use the clock of before the wait for the row.
func (d *database) fence(ctx context.Context, tx lease.Runner, r lease.RenewRequest) error {
	var remaining int64
	sent := time.Now()
	err := tx.QueryOne(ctx, d.Text("fence"), []any{[]byte(r.Key), conn.Bytes(r.Owner), int64(r.Token)},
		&remaining)
	if err != nil || r.TTL <= 0 || conn.Duration(remaining)-time.Since(sent) > r.TTL-r.TTL/3 {
		return err
	}
	_, err = tx.Exec(ctx, d.Text("fence-extend"), []any{conn.Micros(r.TTL), []byte(r.Key)})
	if d.mayNotWrite(err) {
		return nil // the locked row is the fence; renewal goes on beside it
	}
	return err
}

// mayNotWrite reports whether err says that a transaction which can lock rows can write none: one
// that is READ ONLY, or of a user that may write other tables only. The statement has failed, and
// the transaction goes on.
func (d *database) mayNotWrite(err error) bool {
	if err == nil {
		return false
	}
	as := d.Classify(err).As
	return errors.Is(as, lease.ErrReadOnly) || errors.Is(as, lease.ErrPrivilege)
}
