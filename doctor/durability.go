package doctor

import "context"

const forgotten = "a crash of the server can forget a lock that was granted, and grant its token again"

// durability finds settings under which an acknowledged commit may be lost.
func durability(_ context.Context, x *examiner) (f Finding, err error) {
	switch x.d.Name() {
	case "postgres":
		x.durabilityOfPostgres(&f)
	case "mysql":
		x.durabilityOfMySQL(&f)
	default:
		x.durabilityOfSQLite(&f)
	}
	f.fine("a commit that was acknowledged outlives a crash")
	return f, nil
}

func (x *examiner) durabilityOfPostgres(f *Finding) {
	for _, name := range []string{"fsync", "full_page_writes"} {
		s := x.first(name)
		f.saw(s.name, s.value, s.from)
		if s.value == "off" {
			f.raise(Critical, name+" is off: "+forgotten+", or leave the tables corrupt", x.set(s, "on"))
		}
	}
	for _, s := range x.settings("synchronous_commit") {
		f.saw(s.where(), s.value, s.from)
		if s.value == "off" {
			f.raise(Warning, s.where()+" is off: a crash can undo what an application committed under a lock, "+
				"UnlockTx too; rowlock's own commits are durable", x.set(s, "on"))
		}
	}
}

func (x *examiner) durabilityOfMySQL(f *Finding) {
	flush, binlog, writes := x.first("innodb_flush_log_at_trx_commit"), x.first("sync_binlog"),
		x.first("log_bin")
	f.saw(flush.name, flush.value, flush.from)
	if flush.value != "" && flush.value != "1" {
		f.raise(Critical, "innodb_flush_log_at_trx_commit is "+flush.value+": "+forgotten,
			x.set(flush, "1"))
	}
	if double := x.first("innodb_doublewrite"); double.name != "" {
		f.saw(double.name, double.value, double.from)
		if !on(double.value) {
			f.raise(Warning, "innodb_doublewrite is off: a crash can leave a torn page, and the tables "+
				"unreadable", "innodb_doublewrite = ON in my.cnf, and restart, unless the file system writes "+
				"whole pages")
		}
	}
	f.saw(writes.name, writes.value, writes.from)
	if on(writes.value) {
		f.saw(binlog.name, binlog.value, binlog.from)
		if binlog.value != "1" {
			f.raise(Warning, "sync_binlog is "+binlog.value+": after a crash a replica can lack a lock that "+
				"was granted", x.set(binlog, "1"))
		}
	}
}

var synchronous = map[string]string{"0": "OFF", "1": "NORMAL", "2": "FULL", "3": "EXTRA"}

func (x *examiner) durabilityOfSQLite(f *Finding) {
	journal, sync := x.first("journal_mode"), x.first("synchronous")
	level := synchronous[sync.value]
	f.saw(journal.name, journal.value, journal.from)
	f.saw(sync.name, level, sync.from)
	switch journal.value {
	case "wal":
	case "off", "memory":
		f.raise(Critical, "journal_mode is "+journal.value+": a process that is killed while it writes leaves "+
			"the file corrupt", x.set(journal, "WAL"))
	default:
		f.raise(Warning, "journal_mode is "+journal.value+": readers and the writer shut each other out, so "+
			"that renewals wait", x.set(journal, "WAL"))
	}
	switch {
	case level == "OFF":
		f.raise(Critical, "synchronous is OFF: a power cut can forget a lock that was granted, and leave the "+
			"file corrupt", x.set(sync, "FULL"))
	case level == "NORMAL" && journal.value == "wal":
		f.raise(Warning, "synchronous is NORMAL: a power cut can forget a lock that was granted, and grant "+
			"its token again; a crash of a process cannot", x.set(sync, "FULL"))
	}
	if file := x.first("file"); file.value == "" {
		f.raise(Critical, "the database is in memory: every connection has its own, and Open refuses it",
			"open a file, with sqlite.Open(path)")
	}
}
