package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

const (
	// manyDead dead versions are ten times what the tables' own settings start a vacuum at.
	manyDead = 10_000
	// largeLog is the size of an SQLite log, or of free pages in its file, that is reported.
	largeLog = 64 << 20
	// longHistory is the number of undo records of InnoDB that is reported.
	longHistory = 1_000_000
)

// bloat finds tables whose dead rows are not removed.
func bloat(ctx context.Context, x *examiner) (f Finding, err error) {
	if x.d.Name() == "sqlite" {
		rows, err := x.scan(ctx, "bloat")
		if err == nil {
			freePages(&f, rows[0])
		}
		return f, err
	}
	rows, err := x.scan(ctx, "bloat", x.like()...)
	if err != nil {
		return f, err
	}
	for _, name := range []string{"autovacuum", "track_counts"} {
		s := x.first(name)
		f.saw(s.name, s.value, s.from)
		if s.value == "off" {
			f.raise(Warning, name+" is off: dead versions of rows pile up, and every lock becomes slower",
				x.set(s, "on"))
		}
	}
	for _, r := range rows {
		if slices.Contains(tableNames, x.short(r[0])) {
			deadVersions(&f, r)
		}
	}
	f.fine("dead versions of rows are removed")
	return f, nil
}

func deadVersions(f *Finding, r []string) {
	table, live, size, vacuumed, last := r[0], number(r[1]), number(r[3]), r[4] == "true", r[5]
	dead := number(r[2])
	if !vacuumed {
		f.saw("autovacuum_enabled of "+table, "off", "pg_class")
		f.raise(Warning, "autovacuum is off for "+table+": its dead versions pile up, and every lock becomes "+
			"slower", "ALTER TABLE "+table+" RESET (autovacuum_enabled);")
	}
	if dead >= manyDead && dead > live {
		f.saw(table, fmt.Sprintf("%d live rows, %d dead versions, %d bytes, last vacuum %s", live, dead, size,
			last), "pg_stat_all_tables")
		f.raise(Warning, fmt.Sprintf("%s has %d dead versions for %d rows", table, dead, live),
			"VACUUM "+table+";", "see the check horizon, if the vacuum removes nothing")
	}
}

func freePages(f *Finding, r []string) {
	pages, free, page := number(r[0]), number(r[1]), number(r[2])
	f.saw("file", fmt.Sprintf("%d bytes, of which %d are free", pages*page, free*page), "PRAGMA")
	if free*page >= largeLog && free*2 > pages {
		f.raise(Info, fmt.Sprintf("more than half of the file is free pages (%d bytes)", free*page), "VACUUM;")
	}
	f.fine("the file has few free pages")
}

// horizon finds what keeps dead versions from being removed.
func horizon(ctx context.Context, x *examiner) (f Finding, err error) {
	if x.d.Name() == "sqlite" {
		logSize(&f, x.setting("file"))
		return f, nil
	}
	if x.d.Name() == "mysql" {
		if err := x.history(ctx, &f); err != nil {
			return f, err
		}
	}
	rows, err := x.others(ctx, "horizon")
	if err != nil {
		return f, err
	}
	f.saw("open transactions and what else keeps dead versions", len(rows), "the server")
	for _, r := range rows {
		x.holdsBack(&f, r[0], r[1], r[2])
	}
	f.fine("no old transaction holds dead versions back")
	return f, nil
}

// others asks about other sessions, in another way where their statements make the first fail.
func (x *examiner) others(ctx context.Context, name string) ([][]string, error) {
	rows, err := x.scan(ctx, name)
	if err == nil || x.mariaDB || x.text[name+"-timed"] == "" {
		return rows, err
	}
	x.leave()
	if timed, failed := x.scan(ctx, name+"-timed"); failed == nil {
		return timed, nil
	}
	return nil, err
}

func (x *examiner) holdsBack(f *Finding, kind, which, age string) {
	seconds, _ := strconv.ParseFloat(age, 64)
	old := seconds >= x.o.OldTransaction.Seconds()
	const effect = ": no dead version since then can be removed, and every lock becomes slower"
	ago := fmt.Sprintf("open for %.0f s", seconds)
	switch {
	case kind == "hidden":
		f.saw(kind, which, "pg_stat_activity")
		f.raise(Info, "the transactions of "+which+" are hidden from this user", monitor[x.d.Name()])
	case kind == "replication slot":
		f.saw(kind, which, "pg_replication_slots")
		f.raise(Warning, "the replication slot "+which+" is not in use and keeps dead versions",
			"SELECT pg_drop_replication_slot("+literal(which)+");")
	case old && kind == "prepared transaction":
		f.saw(kind+" "+which, ago, "pg_prepared_xacts")
		f.raise(Warning, "a prepared transaction is "+ago+effect, "ROLLBACK PREPARED "+literal(which)+";")
	case old:
		f.saw(kind+" of "+which, ago, "the server")
		f.raise(Warning, "a transaction ("+which+") is "+ago+effect, x.ends(which))
	}
}

// literal quotes a text for PostgreSQL.
func literal(text string) string { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }

// ends is the statement that ends the session "pid 1 of …" or "thread 1".
func (x *examiner) ends(which string) string {
	var word string
	var id int64
	_, _ = fmt.Sscan(which, &word, &id)
	if x.d.Name() == "mysql" {
		return fmt.Sprintf("KILL %d;", id)
	}
	return fmt.Sprintf("SELECT pg_terminate_backend(%d);", id)
}

func (x *examiner) history(ctx context.Context, f *Finding) error {
	status, err := x.status(ctx)
	if err != nil {
		return err
	}
	text, known := status["innodb_history_list_length"] // of MariaDB
	if !known {
		return nil
	}
	f.saw("Innodb_history_list_length", text, "SHOW GLOBAL STATUS")
	if n := number(text); n >= longHistory {
		f.raise(Warning, fmt.Sprintf("the history list has %d records: reads of a busy row walk through its "+
			"old versions", n), "end the oldest transactions: information_schema.INNODB_TRX")
	}
	return nil
}

// logSize looks at the write-ahead log of an SQLite file: a reader that stays keeps it from being
// started again.
func logSize(f *Finding, file string) {
	info, err := os.Stat(file + "-wal")
	if err != nil {
		f.fine("the file has no write-ahead log")
		return
	}
	f.saw("write-ahead log", fmt.Sprintf("%d bytes", info.Size()), file+"-wal")
	if info.Size() >= largeLog {
		f.raise(Warning, fmt.Sprintf("the write-ahead log has %d bytes: a reader that stays open keeps it "+
			"from being started again, and every read becomes slower", info.Size()),
			"end transactions that only read, then PRAGMA wal_checkpoint(TRUNCATE);")
	}
	f.fine("the write-ahead log is small")
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
