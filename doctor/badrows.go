package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// column is one whose values are compared with what rowlock writes.
type column struct{ test, name, bounds string }

// kinds are the tables whose rows are looked at, by their columns.
var kinds = []struct {
	table, key, means, cure string
	severity                Severity
	columns                 []column
}{
	{
		"rowlock", "key", "their keys cannot be locked, or not for long",
		"rowlock release KEY --force --reason TEXT repairs a row of rowlock", Critical,
		[]column{
			{"bytes", "owner", "16"},
			{"number", "token", "0 AND @last_token"},
			{"time", "expires_at", ""},
			{"time", "acquired_at", ""},
			{"number", "home", "-1 AND 32767"},
			{"note", "note", ""},
			{"lease", "expires_at", "365"},
		},
	},
	{
		"rowlock_floor", "bucket", "new keys of these buckets cannot be locked",
		"set floor to a number above every token of the bucket, from a backup or from the trace", Critical,
		[]column{{"number", "floor", "0 AND @last_token"}, {"number", "bucket", "0 AND 255"}},
	},
	{
		"rowlock_era", "history", "tokens do not stay above those of the server's last start",
		"restore the row from a backup; it must not be lower than any token that was granted", Critical,
		[]column{{"number", "start", "0 AND @last_token"}, {"time", "since", ""}},
	},
	{
		"rowlock_queue", "key", "a ticket without an end keeps its key from all behind it",
		"rowlock release KEY --force --reason TEXT removes tickets whose heartbeat does not end", Warning,
		[]column{
			{"bytes", "waiter", "16"},
			{"time", "alive_until", ""},
			{"far", "alive_until", "1"},
			{"note", "note", ""},
		},
	},
	{
		"rowlock_wait", "key", "a deadlock may be seen where there is none, or not be seen",
		"delete the rows: processes that wait write them again", Warning,
		[]column{
			{"bytes", "chain", "16"},
			{"time", "since", ""},
			{"time", "alive_until", ""},
			{"far", "alive_until", "1"},
			{"note", "note", ""},
		},
	},
	{
		"rowlock_member", "key", "a share without an end keeps its key from writers",
		"rowlock release KEY --force --reason TEXT removes the members of a key", Warning,
		[]column{
			{"bytes", "team", "16"},
			{"bytes", "owner", "16"},
			{"time", "joined_at", ""},
			{"time", "expires_at", ""},
			{"far", "expires_at", "365"},
			{"note", "note", ""},
		},
	},
	{
		"rowlock_limit", "name", "these semaphores cannot be used",
		"set slots and peak to 1 to 512, with slots no larger than peak", Critical,
		[]column{
			{"number", "slots", "1 AND 512"},
			{"number", "peak", "slots AND 512"},
			{"number", "generation", "0 AND 9223372036854775807"},
		},
	},
	{
		"rowlock_forced", "key", "the history of forced releases leaves them out",
		"delete or correct the rows: nothing depends on them", Warning,
		[]column{
			{"time", "at", ""},
			{"bytes", "id", "16"},
			{"bytes", "owner", "16"},
			{"number", "token", "0 AND 9223372036854775807"},
			{"note", "note", ""},
		},
	},
	{
		"rowlock_once", "key", "these keys cannot be used again, and their answers are kept for ever",
		"correct the rows; a deleted one lets its effect happen again", Warning,
		[]column{{"bytes", "fingerprint", "0, 32"}, {"time", "made_at", ""}, {"time", "expires_at", ""}},
	},
	{
		"rowlock_latch", "key", "these latches and barriers cannot be used",
		"delete the rows once no party waits", Warning,
		[]column{
			{"bytes", "id", "16"},
			{"number", "generation", "1 AND 9223372036854775807"},
			{"number", "parties", "1 AND 100000"},
			{"number", "state", "0 AND 3"},
			{"number", "ended", "0 AND 3"},
			{"time", "made_at", ""},
			{"time", "expires_at", ""},
		},
	},
}

// badRowsOf is the statement that finds bad rows of a table.
func (x *examiner) badRowsOf(table, key string, columns []column) string {
	tests := make([]string, len(columns))
	for i, c := range columns {
		is := c.name
		if c.test == "far" || c.test == "lease" {
			is += " is far"
		}
		test := strings.NewReplacer("@column", x.quoted(c.name), "@bounds", c.bounds).
			Replace(x.d.Text("doctor-bad-" + c.test))
		tests[i] = fmt.Sprintf("WHEN %s THEN '%s'", test, is)
	}
	return strings.NewReplacer("@key", x.quoted(key), "@table", x.d.Fill(table),
		"@tests", x.d.Fill(strings.Join(tests, " "))).Replace(x.d.Text("doctor-bad"))
}

// quoted is the name of a column, which may be a word of the database's own.
func (x *examiner) quoted(column string) string {
	name, _ := x.d.Quote(column)
	return name
}

// badRows finds rows that rowlock cannot have written: another hand has, and a statement that meets
// one cannot tell what it means.
func badRows(ctx context.Context, x *examiner) (f Finding, err error) {
	f.saw("tables looked at", len(kinds), "the tables")
	for _, k := range kinds {
		name := x.d.Names().Prefix + k.table
		rows, err := x.scanText(ctx, x.badRowsOf(k.table, k.key, k.columns), many)
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
