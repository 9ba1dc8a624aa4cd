package hazard

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/schema"
)

// sessionSettings are settings that applications make in their data source names, several at once
// unless they conflict. Connections correct what they need, and what runs in the application's own
// transaction needs nothing.
var sessionSettings = map[string][][]string{
	"sqlite": {
		{},
		{
			"_pragma=synchronous(OFF)", "_txlock=deferred", "_time_format=sqlite", "_pragma=busy_timeout(1)",
			"_inttotime=1",
		},
		{
			"_txlock=exclusive", "_pragma=foreign_keys(1)", "_pragma=recursive_triggers(1)",
			"_pragma=case_sensitive_like(1)", "_texttotime=1",
		},
	},
	"postgres": {
		{},
		{
			"TimeZone=Asia/Kathmandu", "DateStyle=SQL, DMY", "IntervalStyle=iso_8601", "bytea_output=escape",
			"standard_conforming_strings=off", "extra_float_digits=-15",
		},
		{
			"default_transaction_isolation=serializable", "default_transaction_deferrable=on",
			"lock_timeout=1", "statement_timeout=3000",
		},
		{
			"default_transaction_isolation=repeatable read", "synchronous_commit=off", "row_security=off",
			"transform_null_equals=on", "enable_indexscan=off",
		},
		{"default_query_exec_mode=simple_protocol", "plan_cache_mode=force_custom_plan"},
		{
			"default_query_exec_mode=exec", "client_encoding=LATIN1", "jit_above_cost=0",
			"enable_seqscan=off",
		},
	},
	"mysql": {
		{},
		{
			"clientFoundRows=true", "parseTime=true", "loc=Asia/Kathmandu", "time_zone='+05:00'",
			"sql_mode='ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH'",
		},
		{
			"clientFoundRows=false", "interpolateParams=true", "multiStatements=true", "charset=latin1",
			"sql_mode='NO_BACKSLASH_ESCAPES'",
		},
		{
			"transaction_isolation='SERIALIZABLE'", "autocommit=0", "sql_mode=''",
			"innodb_lock_wait_timeout=1", "collation=utf8mb4_bin",
		},
		{
			"transaction_isolation='READ-UNCOMMITTED'", "completion_type=1", "sql_mode='ONLY_FULL_GROUP_BY'",
			"timestamp=1",
		},
		{
			"sql_safe_updates=1", "sql_select_limit=1",
			"sql_mode='TRADITIONAL,PIPES_AS_CONCAT,IGNORE_SPACE,HIGH_NOT_PRECEDENCE'",
		},
		{
			"interpolateParams=true", "clientFoundRows=true", "sql_mode='NO_BACKSLASH_ESCAPES,ANSI_QUOTES'",
			"time_zone='-08:00'", "charset=utf8mb4,utf8",
		},
	},
	"mariadb": { // beside those of MySQL: modes in which other words mean other things
		{"sql_mode='ORACLE,EMPTY_STRING_IS_NULL,SIMULTANEOUS_ASSIGNMENT'", "innodb_snapshot_isolation=1"},
		{"sql_mode='MSSQL'", "old_mode=''", "interpolateParams=true"},
	},
}

func settings(s *servertest.Scene) [][]string {
	list := sessionSettings[s.Env.Name]
	if s.Is("mariadb") {
		for _, set := range sessionSettings["mysql"] {
			list = append(list,
				strings.Split(strings.ReplaceAll(strings.Join(set, "\n"), "transaction_isolation",
					"tx_isolation"), "\n"))
		}
	}
	return list
}

func TestLocksAreTheSameUnderEverySetting(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		table := s.Ledger()
		for _, set := range settings(s) {
			s.Part(strings.Join(set, " "), func(s *servertest.Scene) {
				seen := s.With(set...)
				seen.Cycle(seen.Env.Pool(s), table)
			})
		}
	})
}

// A role's or a database's default is not a DSN's, and reaches every session alike.
func TestLocksAreTheSameUnderARolesDefaults(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		table := s.Ledger()
		s.Exec(s.Env.DB, `GRANT SELECT, UPDATE ON `+table+` TO `+name)
		for _, isolation := range []string{"serializable", "repeatable read"} {
			s.Exec(s.Env.DB, `ALTER ROLE `+name+` SET default_transaction_isolation = '`+isolation+`'`)
			s.Part(isolation, func(s *servertest.Scene) {
				here := &servertest.Scene{T: s.T, Env: seen.Env}
				here.Cycle(here.Env.Pool(s), table)
			})
		}
	})
}

// In rollback-journal mode a reader and the writer shut each other out, and locks work all the
// same.
func TestLocksAreTheSameInEveryJournalMode(t *testing.T) {
	servertest.On(t, "sqlite", func(s *servertest.Scene) {
		for _, mode := range []string{"DELETE", "TRUNCATE", "PERSIST"} {
			s.Part(mode, func(s *servertest.Scene) {
				source := strings.Replace(s.Env.Kind.DSN(s), "WAL", mode, 1)
				there := s.Migrated(source, dialect.Prefix(s.Env.Dialect.Names().Prefix))
				there.Cycle(there.Env.DB, there.Ledger())
			})
		}
	})
}

// The tables may be in a schema that is on no search path.
func TestTablesInASchemaOfTheirOwn(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		space := s.Env.Dialect.Names().Prefix + "space"
		drop := `DROP DATABASE ` + space
		if s.Is("postgres") {
			s.Exec(s.Env.DB, `CREATE SCHEMA `+space)
			drop = `DROP SCHEMA ` + space
		} else {
			s.Exec(s.Env.DB, `CREATE DATABASE `+space)
		}
		s.Cleanup(func() { s.Env.Exec(s, drop) })
		there := s.Migrated(s.Env.Source, dialect.Schema(space),
			dialect.Prefix(s.Env.Dialect.Names().Prefix))
		there.Cycle(there.Env.DB, s.Ledger())
		if n := s.Number(`SELECT count(*) FROM {rowlock}`); n != 0 {
			s.Errorf("%d rows are in the table of the same name in the default schema", n)
		}
	})
}

// A time zone moves every clock reading that depends on the session. Two clients in different
// zones must still exclude each other, and know each other's remaining time.
func TestClientsInDifferentTimeZonesExcludeEachOther(t *testing.T) {
	zones := map[string][2][]string{
		"postgres": {{"TimeZone=Pacific/Kiritimati"}, {"TimeZone=Pacific/Pago_Pago"}},
		"mariadb": {
			{"time_zone='+13:00'", "parseTime=true", "loc=Pacific/Kiritimati"},
			{"time_zone='-11:00'", "loc=America/New_York"},
		},
		"mysql": {
			{"time_zone='+13:00'", "parseTime=true", "loc=Pacific/Kiritimati"},
			{"time_zone='-11:00'", "loc=America/New_York"},
		},
	}
	servertest.EachServer(t, func(s *servertest.Scene) {
		east, west := s.With(zones[s.Env.Name][0]...), s.With(zones[s.Env.Name][1]...)
		e, w := east.Client(servertest.WithTTL(time.Minute)), west.Client(servertest.WithTTL(time.Minute))
		for _, pair := range []struct {
			holder, rival *rowlock.Client
			seen          *servertest.Scene
		}{{e, w, east}, {w, e, west}} {
			l := s.Take(pair.holder, "k")
			if held := s.WantHeld(pair.rival, "k"); held.Remaining > time.Minute ||
				held.Remaining < 50*time.Second {
				s.Errorf("the rival sees %s of a minute left", held.Remaining)
			}
			tx := s.Begin(pair.seen.Env.Pool(s), nil)
			s.OK(l.UnlockTx(s.Context(), tx))
			s.OK(tx.Commit())
			if n := s.Number(
				`SELECT count(*) FROM {rowlock} WHERE expires_at <= {now} AND expires_at + {second} >= {now}`); n != 1 {
				s.Error("what was unlocked in another zone is not dated now")
			}
		}
	})
}

// An application may return a connection to its pool in the middle of a transaction: by mistake, or
// on MySQL with completion_type = CHAIN by every commit. What a pinned connection does on it must
// be committed all the same.
func TestPinnedConnectionsDoNotInheritATransaction(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		db := s.Env.Pool(s)
		db.SetMaxIdleConns(8)
		var left []*sql.Conn
		for range 5 {
			conn, err := db.Conn(s.Context())
			s.OK(err)
			left = append(left, conn)
			if s.Is("sqlite") {
				s.Exec(conn, `BEGIN DEFERRED`) // of an immediate transaction, only one could begin
			} else {
				s.Exec(conn, `BEGIN`)
			}
			var n int
			s.OK(conn.QueryRowContext(s.Context(), s.Env.SQL(`SELECT count(*) FROM {rowlock}`)).Scan(&n))
		}
		for _, conn := range left {
			s.OK(conn.Close())
		}
		c, rival := s.ClientOn(db), s.Client()
		for i := range 8 { // on every pinned connection
			l := s.Take(c, servertest.Numbered(i))
			s.WantHeld(rival, servertest.Numbered(i))
			s.OK(l.Unlock(s.Context()))
			s.OK(s.Take(rival, servertest.Numbered(i)).Unlock(s.Context()))
		}
	})
}

// Under LOCK TABLES of an application that has returned its connection no other table can be used.
func TestTablesThatAnApplicationHasLeftLockedLockNothing(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		if s.Is("postgres") {
			s.Skip("its LOCK TABLE ends with a transaction")
		}
		table := s.Ledger()
		db := s.Env.Pool(s) // is closed first, or the table could not be dropped
		db.SetMaxIdleConns(8)
		var left []*sql.Conn
		for range 8 {
			c, err := db.Conn(s.Context())
			s.OK(err)
			_, err = c.ExecContext(s.Context(), `LOCK TABLES `+table+` READ`)
			s.OK(err)
			left = append(left, c)
		}
		for _, c := range left {
			s.OK(c.Close())
		}
		s.OK(schema.Migrate(s.Context(), db, s.Env.Dialect))
		s.OK(s.Take(s.ClientOn(db), "k").Unlock(s.Context()))
	})
}
