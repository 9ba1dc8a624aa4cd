package shedlock

import (
	"strconv"
	"strings"
)

// text is the statements for one kind of database and one table.
type text struct{ fit, look, all, insert, update, renew, release string }

// words are what the databases say differently. Each has UTC, whatever the session's time zone.
// fit is false where writes are not committed, or have another time: of the clock, or of a zone other
// than the server's or this.
type words struct{ now, until, micros, fit string }

var (
	// CURRENT_TIMESTAMP would be that of the transaction: a renewal that has waited for the row would
	// revive a lease that has run out.
	postgresWords = words{
		now:   "(clock_timestamp() AT TIME ZONE 'UTC')",
		until: "(clock_timestamp() AT TIME ZONE 'UTC' + CAST(? AS bigint) * interval '1 microsecond')",
		// No difference is infinite, as of an operator's 'infinity'.
		micros: "CAST(extract(epoch FROM least(greatest({to}, '0001-01-01'), '9999-12-31') - " +
			"least(greatest({from}, '0001-01-01'), '9999-12-31')) * 1000000 AS bigint)",
	}
	// ShedLock's statements have milliseconds, and so have its columns.
	mysqlWords = words{
		now:    "UTC_TIMESTAMP(3)",
		until:  "TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(3))",
		micros: "coalesce(TIMESTAMPDIFF(MICROSECOND, {from}, {to}), 0)", // of a lax server's 0000-00-00
		fit: "SELECT @@autocommit AND abs(timestampdiff(SECOND, sysdate(), now())) < 5 AND " +
			"@@session.time_zone = coalesce(nullif(?, ''), @@global.time_zone)",
	}
)

func (w words) between(from, to string) string {
	return strings.NewReplacer("{from}", from, "{to}", to).Replace(w.micros)
}

// statements are those of a table. {mine} compares the beginning of locked_by, which no two attempts
// share. An expired row is granted only if it was not locked in the future: see clocks.
func statements(w words, table string, numbered bool) text {
	fill := strings.NewReplacer("{table}", table, "{now}", w.now, "{until}", w.until,
		"{mine}", "left(locked_by, "+strconv.Itoa(ownerLength)+") = ?",
		"{left}", w.between(w.now, "lock_until"), "{age}", w.between("locked_at", w.now),
		"{clock}", w.between("TIMESTAMP '1970-01-01 00:00:00'", w.now),
		"{ahead}", w.between(w.now, "locked_at"), "{tolerance}", strconv.FormatInt(tolerance.Microseconds(), 10))
	of := func(s string) string {
		s = fill.Replace(s)
		for n := 1; numbered && strings.Contains(s, "?"); n++ {
			s = strings.Replace(s, "?", "$"+strconv.Itoa(n), 1)
		}
		return s
	}
	all := `SELECT name, locked_by, {left}, {age}, {clock} FROM {table}`
	return text{
		fit:    w.fit,
		look:   of(all + ` WHERE name = ?`),
		all:    of(all),
		insert: of(`INSERT INTO {table} (name, lock_until, locked_at, locked_by) VALUES (?, {until}, {now}, ?)`),
		update: of(`UPDATE {table} SET lock_until = greatest(lock_until, {until}), locked_at = {now}, locked_by = ? ` +
			`WHERE name = ? AND ({mine} OR lock_until <= {now} AND {ahead} <= {tolerance})`),
		renew:   of(`UPDATE {table} SET lock_until = {until} WHERE name = ? AND {mine} AND lock_until > {now}`),
		release: of(`UPDATE {table} SET lock_until = {now} WHERE name = ? AND {mine} AND lock_until > {now}`),
	}
}
