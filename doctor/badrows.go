package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/internal/keytext"
)

// kinds are the tables whose rows are looked at, one with a condition. columns are those whose
// values are compared with what rowlock writes: a name, a test of doctor.sql, and its bounds. A TTL
// may be years, and a ticket lives for that of its client: a century is far.
var kinds = []struct {
	table, key, means, cure string
	severity                Severity
	columns                 string
}{
	{
		"rowlock", "key", "their keys cannot be locked, or not for long",
		"rowlock release KEY --force --reason TEXT repairs a row of rowlock", Critical,
		"key bytes BETWEEN 1 AND 255; owner bytes IN (16); token number 0 AND @last_token; expires_at time; acquired_at time; " +
			"placement number -1 AND 32767; note note; expires_at lease 36500",
	},
	{
		"rowlock_floor", "bucket", "new keys of these buckets cannot be locked",
		"set floor to a number above every token of the bucket, from a backup or from the trace", Critical,
		"floor number 0 AND @last_token; bucket number 0 AND 255",
	},
	{
		"rowlock_meta WHERE name LIKE 'era%'", "name", "tokens do not stay above those of the server's last start",
		"restore the row from a backup; it must not be lower than any token that was granted", Critical,
		"start number 0 AND @last_token; since time",
	},
	{
		"rowlock_queue", "key", "a ticket without an end keeps its key from all behind it",
		"rowlock release KEY --force --reason TEXT removes tickets whose heartbeat does not end", Warning,
		"waiter bytes IN (16); alive_until time; alive_until far 36500; note note",
	},
	{
		"rowlock_wait", "key", "a deadlock may be seen where there is none, or not be seen",
		"delete the rows: processes that wait write them again", Warning,
		"caller bytes IN (16); since time; alive_until time; alive_until far 36500; note note",
	},
	{
		"rowlock_member", "key", "a share without an end keeps its key from writers",
		"rowlock release KEY --force --reason TEXT removes the members of a key", Warning,
		"reader_group bytes IN (16); owner bytes IN (16); joined_at time; expires_at time; expires_at far 36500; " +
			"note note",
	},
	{
		"rowlock_limit", "name", "these semaphores cannot be used",
		"set slots and peak to 1 to 512, with slots no larger than peak", Critical,
		"slots number 1 AND 512; peak number slots AND 512; " +
			"generation number 0 AND 9223372036854775807",
	},
	{
		"rowlock_forced", "key", "the history of forced releases leaves them out",
		"delete or correct the rows: nothing depends on them", Warning,
		"at time; id bytes IN (16); owner bytes IN (16); token number 0 AND 9223372036854775807; " +
			"note note",
	},
	{
		"rowlock_once", "key", "these keys cannot be used again, and their answers are kept for ever",
		"correct the rows; a deleted one lets its effect happen again", Warning,
		"fingerprint bytes IN (0, 32); made_at time; expires_at time",
	},
	{
		"rowlock_latch", "key", "these latches and barriers cannot be used",
		"delete the rows once no party waits", Warning,
		"id bytes IN (16); generation number 1 AND 9223372036854775807; " +
			"parties number 1 AND 100000; state number 0 AND 3; ended number 0 AND 3; " +
			"made_at time; expires_at time",
	},
}

// badRowsOf is the statement that finds bad rows of a table.
func (x *examiner) badRowsOf(table, key, columns string) string {
	tests := strings.Split(columns, "; ")
	for i, column := range tests {
		is, test, _ := strings.Cut(column, " ")
		test, bounds, _ := strings.Cut(test, " ")
		by := strings.NewReplacer("@column", x.quoted(is), "@bounds", bounds)
		if test == "far" || test == "lease" {
			is += " is far"
		}
		test = by.Replace(x.d.Text("doctor-bad-" + test))
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
		name := x.d.Names().Prefix + strings.Fields(k.table)[0]
		rows, err := x.scanText(ctx, x.badRowsOf(k.table, k.key, k.columns), many)
		if err != nil {
			err = x.unread(&f, name, name, err)
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
