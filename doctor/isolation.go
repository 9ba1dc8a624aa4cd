package doctor

import "context"

// isolation judges the default of the application's transactions. rowlock's own transactions
// are READ COMMITTED.
func isolation(ctx context.Context, x *examiner) (f Finding, err error) {
	switch x.d.Name() {
	case "postgres":
		x.isolationOfPostgres(&f)
		f.fine("transactions are READ COMMITTED unless they say otherwise")
	case "mysql":
		x.isolationOfMySQL(&f)
		f.fine("transactions are READ COMMITTED unless they say otherwise")
	default:
		err = x.isolationOfSQLite(ctx, &f)
		f.fine("transactions take the file's write lock when they begin")
	}
	return f, err
}

func (x *examiner) isolationOfPostgres(f *Finding) {
	for _, s := range x.settings("default_transaction_isolation") {
		f.saw(s.where(), s.value, s.from)
		if s.value != "read committed" && s.value != "read uncommitted" {
			f.raise(Warning, s.where()+" is "+s.value+": a fence that waited for another transaction gets "+
				"ErrBusy (40001), and the application must repeat the transaction; fence before the first "+
				"read, because the snapshot is of then", x.set(s, "'read committed'"))
		}
	}
}

func (x *examiner) isolationOfMySQL(f *Finding) {
	s := x.first("transaction_isolation", "tx_isolation")
	f.saw(s.name, s.value, s.from)
	if v := x.first("innodb_snapshot_isolation"); v.name != "" {
		f.saw(v.name, v.value, v.from)
	}
	format := x.first("binlog_format")
	if on(x.first("log_bin").value) && format.value == "STATEMENT" {
		f.saw(format.name, format.value, format.from)
		f.raise(Critical, "binlog_format is STATEMENT, with which InnoDB refuses changes at READ COMMITTED "+
			"(error 1665): Open refuses it", x.set(format, "'ROW'"))
	}
	cure := "begin fenced transactions with sql.TxOptions{Isolation: sql.LevelReadCommitted}; or " +
		x.set(s, "'READ-COMMITTED'")
	switch s.value {
	case "READ-COMMITTED":
	case "REPEATABLE-READ":
		f.raise(Info, "REPEATABLE READ: fence before the first read, because a transaction that has read "+
			"before sees what was then, also after the fence; and writes lock gaps between rows, so that "+
			"transactions of different keys can deadlock", cure)
	case "SERIALIZABLE":
		f.raise(Warning, "SERIALIZABLE: every read locks what it reads, so that readers of a key's data wait "+
			"for its holder, and deadlocks (1213) are frequent", cure)
	default:
		f.raise(Warning, s.value+": a transaction reads what another has not committed, also beside a fence",
			cure)
	}
}

func (x *examiner) isolationOfSQLite(ctx context.Context, f *Finding) error {
	if v := x.setting("read_uncommitted"); v == "1" {
		f.saw("read_uncommitted", v, "PRAGMA")
		f.raise(Warning, "read_uncommitted: connections of a shared cache read what is not committed",
			"leave _pragma=read_uncommitted out of the DSN")
	}
	deferred, err := x.beginsDeferred(ctx)
	f.saw("a transaction of the pool begins deferred", deferred, "one that was rolled back")
	if err == nil && deferred {
		f.raise(Warning, "transactions begin deferred: one that reads before it writes or fences fails with "+
			"SQLITE_BUSY if another has written meanwhile, however long busy_timeout is",
			"open the pool with sqlite.Open, or with _txlock=immediate in the DSN")
	}
	return err
}

// beginsDeferred begins a transaction as the application would and rolls it back. Inside a
// transaction that has begun to read or write, SQLite refuses a checkpoint, even one that does
// nothing. It refuses to begin one that writes while another writes, or in a file that is
// read-only.
func (x *examiner) beginsDeferred(ctx context.Context) (bool, error) {
	conn, err := x.session(ctx)
	if err != nil {
		return false, err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return false, ctx.Err()
	}
	_, refused := tx.ExecContext(ctx, `PRAGMA wal_checkpoint(NOOP)`)
	return refused == nil, tx.Rollback()
}
