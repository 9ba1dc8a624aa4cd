//go:build linux

package main

// mutant is one wrong change to rowlock's sources, which an attack must find.
type mutant struct {
	name string
	// file is from the repository's root. Of an .sql file section is the statement; old must be in
	// it, or in the whole .go file, exactly once.
	file, section string
	old, new      string
	// on are the databases to attack: "mariadb", or "postgres+etcd" for a bridge.
	on []string
	// phase is where it shows.
	phase string
}

const (
	postgresSQL = "dialect/postgres/statements.sql"
	mysqlSQL    = "dialect/mysql/statements.sql"
	protectSQL  = "schema/protect/postgres.sql"
	triggersSQL = "schema/protect/mysql.sql"
	sqliteSQL   = "dialect/sqlite/statements.sql"
)

var (
	onPostgres = []string{"postgres"}
	onBridge   = []string{"postgres+etcd"}
	onMySQL    = []string{"mariadb", "mysql"}
	onMariaDB  = []string{"mariadb"}
	onSQLite   = []string{"sqlite"}
)

// mutants drop a guard each, or tell what they do not know. Not here are guards that another stands
// behind: a part of all-or-none is answered as unknown by internal/table, and MySQL's batch
// compares tokens, so that it would need no expiry. Nor are those that act only in the moment
// between a look and a statement, or between a loss and its being told: MySQL's expiry in
// acquire-expired, the owner in a fence and in UnlockTx, the count of a hand-over. No attack of 40
// s met that moment; locktest makes it, and finds each of them.
var mutants = []mutant{
	{"the lone acquire takes a held key", postgresSQL, "acquire-update", " AND r.owner IS NULL", "", onPostgres, "storm"},
	{"the lone acquire takes a held key", mysqlSQL, "acquire-update", " AND owner IS NULL", "", onMySQL, "storm"},
	{"an acquire takes a held key", sqliteSQL, "acquire-update", "(owner IS NULL\n  OR expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER))", "1", onSQLite, "storm"},
	{"an acquire takes what has not expired", postgresSQL, "acquire-any", "AND owner IS NOT NULL AND expires_at <= clock_timestamp()", "AND owner IS NOT NULL", onPostgres, "mixed"},
	{"the lone acquire keeps the token", postgresSQL, "acquire-update", "token = greatest(r.token, @era) + 1", "token = r.token", onPostgres, "storm"},
	{"an acquire keeps the token", sqliteSQL, "acquire-update", "token = max(token, @era) + 1", "token = token", onSQLite, "storm"},
	{"a batch takes what has not expired", postgresSQL, "apply", "    AND (w.was IS NULL AND (r.owner IS NULL OR r.expires_at <= clock_timestamp())", "    AND (w.was IS NULL", onPostgres, "storm"},
	{"a batch keeps the token", postgresSQL, "apply", "ELSE greatest(r.token, @era) + 1 END", "ELSE r.token END", onPostgres, "storm"},
	{"a batch releases for anyone", postgresSQL, "apply", "OR r.owner = w.was AND w.token IN (r.token, 0))", "OR w.was IS NOT NULL)", onPostgres, "mixed"},
	{"a batch says that a release was made", postgresSQL, "apply", "WHEN w.was IS NOT NULL OR r.placement <> @placement THEN 0", "WHEN w.was IS NOT NULL OR r.placement <> @placement THEN 1", onPostgres, "mixed"},
	{"a batch grants a row that another has taken", mysqlSQL, "apply", "r.placement = @placement AND r.token = j.t", "r.placement = @placement", onMySQL, "storm"},
	{"a batch keeps the token", mysqlSQL, "apply", "GREATEST(r.token, @era) + 1)", "r.token)", onMySQL, "storm"},
	{"a batch grants by its count", "dialect/mysql/settle.go", "", "if made[n] {", "if made[n] || count > 0 {", onMySQL, "storm"},
	{"a batch grants because the row has changed", "dialect/mysql/settle.go", "", "if made[n] {", "if made[n] || rows[n].Token > t.changes[n].From.Token {", onMySQL, "storm"},
	{"a release frees another's lock", postgresSQL, "release-relaxed", "owner = $2 AND $3::bigint IN (token, 0)", "$2::bytea IS NOT NULL AND $3::bigint >= 0", onPostgres, "mixed"},
	{"a release frees another's lock", sqliteSQL, "release", "owner = ? AND ? IN (token, 0)", "? IS NOT NULL AND ? >= 0", onSQLite, "mixed"},
	{"a release frees another's lock", mysqlSQL, "release", "owner = ? AND ? IN (token, 0)", "? IS NOT NULL AND ? >= 0", onMySQL, "mixed"},
	{"a hand-over passes on another's lock", postgresSQL, "hand-over", "r.owner = $5 AND r.token = $6", "$5::bytea IS NOT NULL AND $6::bigint >= 0", onPostgres, "mixed"},
	{
		"a fence locks nothing", postgresSQL, "fence",
		"UPDATE rowlock SET expires_at = CASE WHEN $4::bigint > 0 AND expires_at > clock_timestamp()\n" +
			"  THEN greatest(expires_at, clock_timestamp() + $4::bigint * interval '1 microsecond')\n" +
			"    ELSE expires_at END\n" +
			"WHERE key = $1 AND owner = $2 AND token = $3 AND placement = @placement\n" +
			"RETURNING (CASE WHEN xmin::text::bigint = txid_current() & 4294967295 THEN '1'\n" +
			"  WHEN (SELECT CASE WHEN past < 2147483648 THEN txid_status(txid_current() + past) END\n" +
			"    FROM (SELECT (before.xmin::text::bigint - txid_current()) & 4294967295 AS past\n" +
			"      FROM rowlock AS before WHERE before.key = $1) AS x) = 'in progress' THEN '1'\n" +
			"  ELSE 'a fence inside a savepoint' END)::int",
		"SELECT 1 FROM rowlock WHERE $4::bigint >= 0 AND key = $1 AND owner = $2 AND token = $3 AND placement = @placement", onPostgres, "calm",
	},
	{"a fence locks nothing", "dialect/mysql/fence.go", "", `tx.Exec(ctx, d.Text("fence"), args)`, "int64(1), error(nil)", onMySQL, "calm"},
	{"a fence is shared", "dialect/mysql/fence.go", "", `tx.Exec(ctx, d.Text("fence"), args)`, `int64(1), tx.QueryOne(ctx, d.Text("readers-fence"), args, new(int))`, onMySQL, "calm"},
	{"a new row forgets the floor", postgresSQL, "acquire-insert", "greatest(f.floor, @era) + 1", "1", onPostgres, "mixed"},
	{"a new row forgets the floor", mysqlSQL, "create", "GREATEST(f.floor, @era) + 1)", "1)", onMariaDB, "mixed"},
	{"the reaper removes a held row", postgresSQL, "dead-lock", "AND expires_at <= clock_timestamp() - $2::bigint * interval '1 microsecond'", "AND $2::bigint >= 0", onPostgres, "mixed"},
	{"a protected table takes a row of the lock for a fence", protectSQL, "protect", "r.xmin = pg_current_xact_id()::xid", "true", onPostgres, "mixed"},
	{"a protected table refuses nothing", protectSQL, "protect", "IF FOUND THEN {refuse}", "IF false THEN {refuse}", onPostgres, "mixed"},
	{"a protected table believes a mark of an earlier grant", triggersSQL, "check", "r.fenced_token = r.token", "true", onMySQL, "mixed"},
	{"a protected table believes another session's mark", triggersSQL, "check", "r.fenced_by = CONNECTION_ID()", "r.fenced_by > 0", onMySQL, "mixed"},
	{"a protected table believes the mark of a lock that was left", triggersSQL, "check", "r.owner IS NOT NULL AND ", "", onMySQL, "mixed"},
	{"a protected table refuses nothing", triggersSQL, "check", "IF fenced = 0 THEN", "IF fenced < 0 THEN", onMySQL, "mixed"},
	{"a section of a lock leaves its mark", mysqlSQL, "fence-end", "fenced_by = 0", "acquired_at = acquired_at", onMySQL, "mixed"},
	{"the table grants a key that has moved", postgresSQL, "acquire-update", " AND r.placement = @placement", "", onBridge, "mixed"},
	{"a batch grants a key that has moved", postgresSQL, "apply", "  WHERE r.placement = @placement AND r.token BETWEEN 0 AND @last_token - 1\n    AND (w.was IS NULL AND", "  WHERE r.token BETWEEN 0 AND @last_token - 1\n    AND (w.was IS NULL AND", onBridge, "mixed"},
}
