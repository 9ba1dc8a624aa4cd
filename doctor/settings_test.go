package doctor_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// roleSetting is a setting of a role that a check reports, and with which it does not.
var roleSettings = []struct {
	id, name, value string
	severity        doctor.Severity
	says            []string
}{
	{
		"timeouts", "statement_timeout", "'50ms'", doctor.Warning,
		[]string{"statement_timeout of role", "50ms", "57014", "SET statement_timeout = '5000ms'"},
	},
	{"timeouts", "lock_timeout", "20", doctor.Warning, []string{"20", "55P03"}},
	{
		"timeouts", "idle_in_transaction_session_timeout", "'1s'", doctor.Warning,
		[]string{"rolled back"},
	},
	{"timeouts", "idle_session_timeout", "'10s'", doctor.Warning, []string{"connects anew"}},
	{
		"isolation", "default_transaction_isolation", "'serializable'", doctor.Warning,
		[]string{"40001", "'read committed'"},
	},
	{"durability", "synchronous_commit", "off", doctor.Warning, []string{"UnlockTx", "= on;"}},
	{"read-only", "default_transaction_read_only", "on", doctor.Critical, []string{"Open refuses"}},
}

// A DBA's default of a role is found in the role's own sessions, and also by another user who
// examines, if the role may lock.
func TestDefaultsOfARoleAreFound(t *testing.T) {
	on(t, func(s scene) {
		role, seen := s.User()
		s.Grant(role)
		own := scene{seen}
		for _, c := range roleSettings {
			if c.name == "idle_session_timeout" && s.Env.Before(s, 14) {
				continue
			}
			s.Part(c.name, func(p *servertest.Scene) {
				s, own := scene{p}, scene{&servertest.Scene{T: p.T, Env: own.Env}}
				p.Exec(p.Env.DB, `ALTER ROLE `+role+` SET `+c.name+` = `+c.value)
				says := append(c.says, "ROLE "+role)
				own.wants(c.severity, c.id, says...)
				s.wants(c.severity, c.id, says...)
				cure := own.finding(c.id).Cure[0]
				p.Exec(p.Env.DB, cure[:strings.Index(cure, ";")])
				if c.severity < doctor.Critical { // the cure gives it a value that will do
					own.wants(doctor.OK, c.id)
				}
				p.Exec(p.Env.DB, `ALTER ROLE `+role+` RESET ALL`)
				own.wants(doctor.OK, c.id)
				s.wants(doctor.OK, c.id)
			})
		}
	}, "postgres")
}

func TestDefaultsOfADatabaseAndOfADSNAreFound(t *testing.T) {
	on(t, func(s scene) {
		in := scene{s.With("statement_timeout=50")}
		in.wants(doctor.Warning, "timeouts", "source client", "out of the DSN")
		name := s.Env.Dialect.Names().Prefix + "db"
		s.Exec(s.Env.DB, `CREATE DATABASE `+name)
		s.Cleanup(func() { s.Env.Exec(s, `DROP DATABASE `+name+` WITH (FORCE)`) })
		s.Exec(s.Env.DB, `ALTER DATABASE `+name+` SET lock_timeout = '1ms'`)
		u, err := url.Parse(s.Env.Source)
		s.OK(err)
		u.Path = "/" + name
		other := scene{s.Migrated(u.String())}
		other.wants(doctor.Warning, "timeouts", "lock_timeout of database "+name, "ALTER DATABASE "+name)
	}, "postgres")
}

// sessionSettings are settings in a DSN, by database.
var sessionSettings = map[string][]struct {
	setting, id string
	severity    doctor.Severity
	says        string
}{
	"mysql": {
		{"transaction_isolation='SERIALIZABLE'", "isolation", doctor.Warning, "1213"},
		{"transaction_isolation='READ-UNCOMMITTED'", "isolation", doctor.Warning, "not committed"},
		{"transaction_isolation='READ-COMMITTED'", "isolation", doctor.OK, ""},
		{"max_execution_time=50", "timeouts", doctor.Warning, "3024"},
		{"wait_timeout=5", "timeouts", doctor.Warning, "SET PERSIST wait_timeout"},
	},
	"mariadb": {
		{"tx_isolation='SERIALIZABLE'", "isolation", doctor.Warning, "1213"},
		{"max_statement_time=0.5", "timeouts", doctor.Critical, "1969"},
		{"idle_transaction_timeout=1", "timeouts", doctor.Warning, "my.cnf"},
	},
	"sqlite": {
		{"_pragma=synchronous(OFF)", "durability", doctor.Critical, "power cut"},
		{"_pragma=synchronous(NORMAL)", "durability", doctor.Warning, "FULL"},
		{"_pragma=query_only(1)", "read-only", doctor.Critical, "no writes"},
		{"_pragma=read_uncommitted(1)", "isolation", doctor.Warning, "not committed"},
	},
}

func TestSettingsOfASessionAreFound(t *testing.T) {
	t.Parallel()
	for name, settings := range sessionSettings {
		on(t, func(s scene) {
			for _, c := range settings {
				scene{s.With(c.setting)}.wants(c.severity, c.id, c.says)
				if f := s.finding(c.id); f.Severity > doctor.Info {
					t.Errorf("without %s: %+v", c.setting, f)
				}
			}
		}, name)
	}
}

// The pool of an SQLite file with settings of its own, instead of those that are right.
func TestPragmasOfAPoolAreFound(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		file, _, _ := strings.Cut(s.Env.Source, "?")
		for query, c := range map[string]struct {
			id       string
			severity doctor.Severity
			says     string
		}{
			"_txlock=immediate":                                 {"timeouts", doctor.Critical, "SQLITE_BUSY"},
			"_txlock=immediate&_pragma=busy_timeout(9)":         {"timeouts", doctor.Warning, "9 ms"},
			"_pragma=busy_timeout(5000)":                        {"isolation", doctor.Warning, "deferred"},
			"_pragma=busy_timeout(5000)&_txlock=immediate&_x=1": {"isolation", doctor.OK, ""},
		} {
			env := *s.Env
			env.Source = file + "?" + query
			scene{&servertest.Scene{T: s.T, Env: &env}}.wants(c.severity, c.id, c.says)
		}
		old := scene{s.Migrated("file:" + s.TempDir() + "/old.db?_pragma=busy_timeout(5000)")}
		old.wants(doctor.Warning, "durability", "journal_mode is delete", "WAL")
		none := scene{s.Migrated("file:" + s.TempDir() + "/none.db?_pragma=journal_mode(OFF)")}
		none.wants(doctor.Critical, "durability", "journal_mode is off", "corrupt")
	}, "sqlite")
}

// The servers are the test's own, because tests of other packages examine those of all.
func TestAnUnsafeLogOfMySQLIsFound(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mysql", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := standby.StartAlone(t, name)
			s := scene{&servertest.Scene{T: t, Env: &testdb.Env{
				Kind: servertest.KindNamed(name), DB: a.DB, Dialect: sqlstore.Of(mysql.New()), Source: a.Source,
			}}}
			s.OK(schema.Migrate(t.Context(), a.DB, s.Env.Dialect))
			s.unsafeLog()
		})
	}
}

func (s scene) unsafeLog() {
	s.Helper()
	s.Exec(s.Env.DB, `SET GLOBAL innodb_flush_log_at_trx_commit = 2`)
	f := s.wants(doctor.Critical, "durability", "innodb_flush_log_at_trx_commit is 2", "forget a lock")
	cure, _, _ := strings.Cut(f.Cure[0], ";")
	s.Exec(s.Env.DB, cure)
	s.wants(doctor.OK, "durability")
	if s.Is("mysql") {
		s.Exec(s.Env.DB, `SET GLOBAL sync_binlog = 0`)
		s.wants(doctor.Warning, "durability", "sync_binlog is 0")
	}
}

// Settings of a session that Open pins change nothing that is found, nor cut short what is read.
func TestSettingsThatOpenPinsAreNoFindings(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		for _, setting := range []string{
			"sql_select_limit=0", "sql_select_limit=1", "group_concat_max_len=4", "timestamp=1", "completion_type=2",
			"max_sort_length=4", "max_sort_length=8", "sql_big_selects=0 max_join_size=1", "character_set_results=utf16",
			"character_set_connection=utf16", "character_set_client=gbk",
		} {
			r := scene{s.With(strings.Fields(setting)...)}.examine(quick("schema", "tables", "clock", "privileges", "open"))
			if len(r.Findings) != 5 || r.Worst > doctor.Info {
				t.Errorf("with %s: %+v", setting, r.Findings)
			}
		}
	}, "mysql", "mariadb")
}

// Locks are granted under it, and nothing is written that is fenced.
func TestTransactionsThatOnlyReadAreFound(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		s.wants(doctor.OK, "read-only")
		scene{s.With("transaction_read_only=1")}.wants(doctor.Critical, "read-only", "transaction_read_only is on", "1792", "SET PERSIST")
	}, "mysql")
	on(t, func(s scene) {
		s.wants(doctor.OK, "read-only")
		scene{s.With("tx_read_only=1")}.wants(doctor.Critical, "read-only", "tx_read_only is on", "1792", "SET GLOBAL")
	}, "mariadb")
}

// A limit on transactions that do nothing may be shorter than the moment between two statements.
func TestAShortLimitOnIdleTransactionsKeepsNoCheckFromBeingMade(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		own := scene{s.With("idle_in_transaction_session_timeout=1")}
		own.wants(doctor.Warning, "timeouts", "idle_in_transaction_session_timeout is 1ms", "'4000ms'")
		for _, f := range own.examine(quick("schema", "tables", "privileges", "bloat", "horizon", "dead-rows", "orphans")).Findings {
			if !f.Checked {
				s.Errorf("%+v", f)
			}
		}
	}, "postgres")
}
