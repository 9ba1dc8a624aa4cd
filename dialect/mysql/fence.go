package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// fence locks and marks the row, and extends the lease in a second statement when a third of its
// TTL has gone. One statement would use the clock of before the wait for the row.
func (d *database) fence(ctx context.Context, tx lease.Runner, r lease.RenewRequest) error {
	args := []any{[]byte(r.Key), conn.Bytes(r.Owner), int64(r.Token)}
	sent := time.Now()
	n, err := tx.Exec(ctx, d.Text("fence"), args)
	if err != nil && oneline.Is(d.Classify(err).As, lease.ErrReadOnly, lease.ErrPrivilege) {
		// Only this statement has failed: the transaction is READ ONLY, or of a user that may write other
		// tables only. The locked row is the fence; renewal goes on beside it.
		return tx.QueryOne(ctx, d.Text("fence-lock"), args, new(int))
	}
	if err == nil && n == 0 {
		err = sql.ErrNoRows
	}
	if err != nil || r.TTL <= 0 || r.Left-time.Since(sent) > r.TTL-r.TTL/3 {
		return err
	}
	_, err = tx.Exec(ctx, d.Text("fence-extend"), []any{conn.Micros(r.TTL), []byte(r.Key)})
	return err
}

// spell writes parameters into a statement: bytes in hexadecimal, which no mode and no character
// set of a session reads otherwise, and integers.
func spell(query string, args []any) string {
	var b strings.Builder
	for _, arg := range args {
		before, after, _ := strings.Cut(query, "?")
		format := "%d"
		if _, bytes := arg.([]byte); bytes {
			format = "x'%x'"
		}
		b.WriteString(before)
		fmt.Fprintf(&b, format, arg)
		query = after
	}
	return b.String() + query
}
