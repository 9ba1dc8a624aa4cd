package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// kinds are the tables whose rows are compared with what rowlock writes.
var kinds = []struct {
	section, table, means, cure string
	severity                    Severity
}{
	{
		"doctor-bad-rowlock", "rowlock", "their keys cannot be locked, or not for long",
		"rowlock release KEY --force --reason TEXT repairs a row of rowlock", Critical,
	},
	{
		"doctor-bad-floor", "rowlock_floor", "new keys of these buckets cannot be locked",
		"set floor to a number above every token of the bucket, from a backup or from the trace", Critical,
	},
	{
		"doctor-bad-era", "rowlock_era", "tokens do not stay above those of the server's last start",
		"restore the row from a backup; it must not be lower than any token that was granted", Critical,
	},
	{
		"doctor-bad-queue", "rowlock_queue", "a ticket without an end keeps its key from all behind it",
		"rowlock release KEY --force --reason TEXT removes tickets whose heartbeat does not end", Warning,
	},
	{
		"doctor-bad-wait", "rowlock_wait", "a deadlock may be seen where there is none, or not be seen",
		"delete the rows: processes that wait write them again", Warning,
	},
	{
		"doctor-bad-member", "rowlock_member", "a share without an end keeps its key from writers",
		"rowlock release KEY --force --reason TEXT removes the members of a key", Warning,
	},
	{
		"doctor-bad-limit", "rowlock_limit", "these semaphores cannot be used",
		"set slots and peak to 1 to 512, with slots no larger than peak", Critical,
	},
	{
		"doctor-bad-forced", "rowlock_forced", "the history of forced releases leaves them out",
		"delete or correct the rows: nothing depends on them", Warning,
	},
	{
		"doctor-bad-once", "rowlock_once", "these keys cannot be used again, and their answers are kept for ever",
		"correct the rows; a deleted one lets its effect happen again", Warning,
	},
	{
		"doctor-bad-latch", "rowlock_latch", "these latches and barriers cannot be used",
		"delete the rows once no party waits", Warning,
	},
}

// badRows finds rows that rowlock cannot have written: another hand has, and a statement that meets
// one cannot tell what it means.
func badRows(ctx context.Context, x *examiner) (f Finding, err error) {
	f.saw("tables looked at", len(kinds), "the tables")
	for _, k := range kinds {
		name := x.d.Names().Prefix + k.table
		rows, err := x.scanTables(ctx, k.section, many)
		as := sqlstore.Judge(x.d, err).As
		if errors.Is(as, lease.ErrPrivilege) || errors.Is(as, lease.ErrNoSchema) ||
			errors.Is(as, lease.ErrSchemaVersion) {
			x.leave()
			f.saw(name, "not to be read", name)
			continue
		}
		if err != nil {
			return f, err
		}
		for _, r := range rows[:min(len(rows), named)] {
			f.saw(keytext.Show(r[0]), r[1], name)
		}
		if n := len(rows); n > 0 {
			f.raise(k.severity, fmt.Sprintf("%d rows of %s have values that rowlock does not write: %s",
				n, name, k.means), k.cure)
		}
	}
	f.fine("every row is one that rowlock may have written")
	return f, nil
}
