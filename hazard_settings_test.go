package rowlock_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
)

// sessionSettings are what applications set in their data source names, several at once where they do not get into each other's
// way. Lanes put right what they need, and what runs in the application's own transaction needs nothing.
var sessionSettings = map[string][][]string{
	"sqlite": {
		{},
		{"_pragma=synchronous(OFF)", "_txlock=deferred", "_time_format=sqlite", "_pragma=busy_timeout(0)", "_inttotime=1"},
		{"_txlock=exclusive", "_pragma=foreign_keys(1)", "_pragma=recursive_triggers(1)", "_pragma=case_sensitive_like(1)", "_texttotime=1"},
	},
	"postgres": {
		{},
		{"TimeZone=Asia/Kathmandu", "DateStyle=SQL, DMY", "IntervalStyle=iso_8601", "bytea_output=escape", "standard_conforming_strings=off", "extra_float_digits=-15"},
		{"default_transaction_isolation=serializable", "default_transaction_deferrable=on", "lock_timeout=1", "statement_timeout=3000"},
		{"default_transaction_isolation=repeatable read", "synchronous_commit=off", "row_security=off", "transform_null_equals=on", "enable_indexscan=off"},
		{"default_query_exec_mode=simple_protocol", "plan_cache_mode=force_custom_plan"},
		{"default_query_exec_mode=exec", "client_encoding=LATIN1", "jit_above_cost=0", "enable_seqscan=off"},
	},
	"mysql": {
		{},
		{"clientFoundRows=true", "parseTime=true", "loc=Asia/Kathmandu", "time_zone='+05:00'", "sql_mode='ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH'"},
		{"clientFoundRows=false", "interpolateParams=true", "multiStatements=true", "charset=latin1", "sql_mode='NO_BACKSLASH_ESCAPES'"},
		{"transaction_isolation='SERIALIZABLE'", "autocommit=0", "sql_mode=''", "innodb_lock_wait_timeout=1", "collation=utf8mb4_bin"},
		{"transaction_isolation='READ-UNCOMMITTED'", "completion_type=1", "sql_mode='ONLY_FULL_GROUP_BY'", "timestamp=1"},
		{"sql_safe_updates=1", "sql_select_limit=1", "sql_mode='TRADITIONAL,PIPES_AS_CONCAT,IGNORE_SPACE,HIGH_NOT_PRECEDENCE'"},
		{"interpolateParams=true", "clientFoundRows=true", "sql_mode='NO_BACKSLASH_ESCAPES,ANSI_QUOTES'", "time_zone='-08:00'", "charset=utf8mb4,utf8"},
	},
	"mariadb": { // beside those of MySQL: modes in which other words mean other things
		{"sql_mode='ORACLE,EMPTY_STRING_IS_NULL,SIMULTANEOUS_ASSIGNMENT'", "innodb_snapshot_isolation=1"},
		{"sql_mode='MSSQL'", "old_mode=''", "interpolateParams=true"},
	},
}

func (s *scene) settings() [][]string {
	list := sessionSettings[s.env.Name]
	if s.is("mariadb") {
		for _, set := range sessionSettings["mysql"] {
			list = append(list, strings.Split(strings.ReplaceAll(strings.Join(set, "\n"), "transaction_isolation", "tx_isolation"), "\n"))
		}
	}
	return list
}

func TestLocksAreTheSameUnderEverySetting(t *testing.T) {
	eachScene(t, func(s *scene) {
		table := s.ledger()
		for _, set := range s.settings() {
			s.part(strings.Join(set, " "), func(s *scene) {
				seen := s.with(set...)
				seen.cycle(seen.env.Pool(s), table)
			})
		}
	})
}

// A role's or a database's default is not a DSN's, and reaches every session alike.
func TestLocksAreTheSameUnderARolesDefaults(t *testing.T) {
	onScene(t, "postgres", func(s *scene) {
		name, seen := s.user()
		s.grant(name)
		table := s.ledger()
		s.exec(s.env.DB, `GRANT SELECT, UPDATE ON `+table+` TO `+name)
		for _, isolation := range []string{"serializable", "repeatable read"} {
			s.exec(s.env.DB, `ALTER ROLE `+name+` SET default_transaction_isolation = '`+isolation+`'`)
			s.part(isolation, func(s *scene) {
				here := &scene{s.T, seen.env}
				here.cycle(here.env.Pool(s), table)
			})
		}
	})
}

// In rollback-journal mode a reader and the writer shut each other out, and locks are none the worse.
func TestLocksAreTheSameInEveryJournalMode(t *testing.T) {
	onScene(t, "sqlite", func(s *scene) {
		for _, mode := range []string{"DELETE", "TRUNCATE", "PERSIST"} {
			s.part(mode, func(s *scene) {
				source := strings.Replace(s.env.Kind.DSN(s), "WAL", mode, 1)
				there := s.migrated(source, dialect.Prefix(s.env.Dialect.Names().Prefix))
				there.cycle(there.env.DB, there.ledger())
			})
		}
	})
}

// The tables may be in a schema that no search path has.
func TestTablesInASchemaOfTheirOwn(t *testing.T) {
	eachServer(t, func(s *scene) {
		space := s.env.Dialect.Names().Prefix + "space"
		drop := `DROP DATABASE ` + space
		if s.is("postgres") {
			s.exec(s.env.DB, `CREATE SCHEMA `+space)
			drop = `DROP SCHEMA ` + space
		} else {
			s.exec(s.env.DB, `CREATE DATABASE `+space)
		}
		s.Cleanup(func() { s.env.Exec(s, drop) })
		there := s.migrated(s.env.Source, dialect.Schema(space), dialect.Prefix(s.env.Dialect.Names().Prefix))
		there.cycle(there.env.DB, s.ledger())
		if n := s.number(`SELECT count(*) FROM {rowlock}`); n != 0 {
			s.Errorf("%d rows are in the table of the same name in the default schema", n)
		}
	})
}

// A time zone moves every clock reading that depends on the session. Two clients in different ones must still exclude each
// other, and know how long the other has.
func TestClientsInDifferentTimeZonesExcludeEachOther(t *testing.T) {
	zones := map[string][2][]string{
		"postgres": {{"TimeZone=Pacific/Kiritimati"}, {"TimeZone=Pacific/Pago_Pago"}},
		"mariadb":  {{"time_zone='+13:00'", "parseTime=true", "loc=Pacific/Kiritimati"}, {"time_zone='-11:00'", "loc=America/New_York"}},
		"mysql":    {{"time_zone='+13:00'", "parseTime=true", "loc=Pacific/Kiritimati"}, {"time_zone='-11:00'", "loc=America/New_York"}},
	}
	eachServer(t, func(s *scene) {
		east, west := s.with(zones[s.env.Name][0]...), s.with(zones[s.env.Name][1]...)
		e, w := east.client(withTTL(time.Minute)), west.client(withTTL(time.Minute))
		for _, pair := range []struct {
			holder, rival *rowlock.Client
			seen          *scene
		}{{e, w, east}, {w, e, west}} {
			l := s.take(pair.holder, "k")
			if held := s.wantHeld(pair.rival, "k"); held.Remaining > time.Minute || held.Remaining < 50*time.Second {
				s.Errorf("the rival was told that the lease has %s of a minute left", held.Remaining)
			}
			tx := s.begin(pair.seen.env.Pool(s), nil)
			s.ok(l.UnlockTx(s.Context(), tx))
			s.ok(tx.Commit())
			if n := s.number(`SELECT count(*) FROM {rowlock} WHERE expires_at <= {now} AND expires_at + {second} >= {now}`); n != 1 {
				s.Error("what was unlocked in another zone is not dated now")
			}
		}
	})
}

// An application may give a connection back to its pool in the middle of a transaction: by mistake, or on MySQL with
// completion_type = CHAIN by every commit. What a lane does on it must be committed all the same.
func TestLanesDoNotInheritATransaction(t *testing.T) {
	eachScene(t, func(s *scene) {
		db := s.env.Pool(s)
		db.SetMaxIdleConns(8)
		var left []*sql.Conn
		for range 5 {
			conn, err := db.Conn(s.Context())
			s.ok(err)
			left = append(left, conn)
			if s.is("sqlite") {
				s.exec(conn, `BEGIN DEFERRED`) // of others, one could begin only
			} else {
				s.exec(conn, `BEGIN`)
			}
			var n int
			s.ok(conn.QueryRowContext(s.Context(), s.env.SQL(`SELECT count(*) FROM {rowlock}`)).Scan(&n))
		}
		for _, conn := range left {
			s.ok(conn.Close())
		}
		c, rival := s.clientOn(db), s.client()
		for i := range 8 { // on every lane
			l := s.take(c, numbered(i))
			s.wantHeld(rival, numbered(i))
			s.ok(l.Unlock(s.Context()))
			s.ok(s.take(rival, numbered(i)).Unlock(s.Context()))
		}
	})
}
