package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// most bounds what is counted of a table.
	most = 100_000
	// many are so many leftovers that something does not remove them.
	many = 10_000
	// named is how many keys are named as evidence.
	named = 5
)

// leftovers counts what is dead in a table, and what has been for longer than the retention.
func (x *examiner) leftovers(ctx context.Context, table, end string) (dead, overdue int64,
	oldest time.Duration, err error,
) {
	query := strings.NewReplacer("@table", x.d.Fill(table), "@column", end).Replace(x.d.Text("doctor-left"))
	rows, err := x.scanText(ctx, query, x.o.Retention.Microseconds(), most)
	if err != nil || len(rows) == 0 {
		return 0, 0, 0, err
	}
	r := rows[0]
	return number(r[0]), number(r[1]), conn.Duration(number(r[2])), nil
}

// deadRows finds rows of free keys that no client's reaper has removed.
func deadRows(ctx context.Context, x *examiner) (f Finding, err error) {
	dead, overdue, oldest, err := x.leftovers(ctx,
		"(SELECT expires_at FROM rowlock WHERE placement = @placement) AS r", "expires_at")
	if err != nil {
		return f, err
	}
	table := x.d.Names().Prefix + "rowlock"
	f.saw("rows of free keys", atMost(dead), table)
	f.saw("of these, free for longer than "+x.o.Retention.String(), atMost(overdue), table)
	if overdue > 0 {
		f.raise(either(overdue >= many, Warning, Info), fmt.Sprintf("%s rows of keys that have been free for up to %s were "+
			"not removed: no client's reaper runs", atMost(overdue), oldest.Round(time.Second)),
			"keep a client open with the reaper on (Config.Reaper.Off false)")
	}
	f.fine("the rows of free keys are removed")
	return f, nil
}

// orphans finds keys and registrations of clients that have ended without giving them up.
func orphans(ctx context.Context, x *examiner) (f Finding, err error) {
	if err := x.expiredKeys(ctx, &f); err != nil {
		return f, err
	}
	for _, o := range []struct{ table, end, what string }{
		{"rowlock_queue", "alive_until", "tickets and registrations of waiters"},
		{"rowlock_wait", "alive_until", "records of calls that wait while they hold a key"},
		{"rowlock_member", "expires_at", "shares of keys"},
	} {
		if err := x.leftOf(ctx, &f, o.table, o.end, o.what); err != nil {
			return f, err
		}
	}
	f.fine("nothing is left of clients that have ended")
	return f, nil
}

func (x *examiner) expiredKeys(ctx context.Context, f *Finding) error {
	rows, err := x.scanText(ctx, x.d.Text("doctor-expired"), many)
	if err != nil {
		return err
	}
	for _, r := range rows[:min(len(rows), named)] {
		identity, note := lease.SplitNote(r[1])
		f.saw(fmt.Sprintf("%q", r[0]), fmt.Sprintf("token %s, expired %s ago, of %s", r[2],
			conn.Duration(number(r[3])).Round(time.Second),
			lease.Describe(identity, note)), x.d.Names().Prefix+"rowlock")
	}
	if n := len(rows); n > 0 {
		f.raise(either(n >= 100, Warning, Info), fmt.Sprintf("the leases of %d keys have run out: their holders have ended, or "+
			"could not renew", n), "look for processes that cannot reach the database or crash: Hooks.Lost, and their logs")
	}
	return nil
}

// leftOf reports what is left in one table. A user who does not use it need not read it.
func (x *examiner) leftOf(ctx context.Context, f *Finding, table, end, what string) error {
	dead, overdue, oldest, err := x.leftovers(ctx, table, end)
	if err != nil {
		return x.unread(f, what, x.d.Names().Prefix+table, err)
	}
	f.saw(what+" without a heartbeat", atMost(dead), x.d.Names().Prefix+table)
	if overdue > 0 {
		f.raise(either(overdue >= many, Warning, Info), fmt.Sprintf("%s %s are left in %s for up to %s: no client's reaper runs",
			atMost(overdue), what, x.d.Names().Prefix+table, oldest.Round(time.Second)),
			"keep a client open with the reaper on (Config.Reaper.Off false)")
	}
	return nil
}

// unread notes a table that this user has not, or may not read. Another error is returned.
func (x *examiner) unread(f *Finding, what, table string, err error) error {
	if !oneline.Is(sqlstore.Judge(x.d, err).As, lease.ErrPrivilege, lease.ErrNoSchema, lease.ErrSchemaVersion) {
		return err
	}
	x.leave()
	f.saw(what, "not to be read", table)
	return nil
}

func atMost(n int64) string {
	if n >= most {
		return fmt.Sprintf("%d or more", most)
	}
	return fmt.Sprint(n)
}
