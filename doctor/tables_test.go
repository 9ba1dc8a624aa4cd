package doctor_test

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/schema"
)

func TestTablesThatAreMissingOrOfAnotherVersionAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(s scene) {
		none := s.Env.New(dialect.Prefix("missing_"))
		r := s.examineOn(s.Env.Pool(s), none, quick())
		for _, f := range r.Findings {
			switch f.ID {
			case "schema":
				judge(t, f, doctor.Critical, "no tables", "rowlock migrate up")
			case "tables", "dead-rows", "orphans", "deadlocks":
				if f.Checked || f.Severity != doctor.Info {
					s.Errorf("without tables: %+v", f)
				}
			}
		}
		for version, says := range map[string]string{"99": "newer", "1": "never released", "0": "migrate up", "x": "no number"} {
			s.Exec(s.Env.DB, `UPDATE {rowlock_meta} SET value = '`+version+`' WHERE name IN ('schema_version', 'compatible_from')`)
			s.wants(doctor.Critical, "schema", says)
		}
		s.Exec(s.Env.DB, `UPDATE {rowlock_meta} SET value = '3' WHERE name IN ('schema_version', 'compatible_from')`)
		s.wants(doctor.OK, "schema")
	})
}

func TestAlteredTablesAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(s scene) {
		s.dropIndex()
		f := s.wants(doctor.Warning, "tables", "rowlock_once on (expires_at)", "CREATE INDEX")
		s.Exec(s.Env.DB, strings.TrimSuffix(f.Cure[0], ";"))
		s.wants(doctor.OK, "tables")
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock_queue} DROP COLUMN ttl`)
		s.wants(doctor.Critical, "tables", "column ttl")
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock_queue} ADD COLUMN ttl INTEGER`)
		s.Exec(s.Env.DB, `DROP TABLE {rowlock_limit}`)
		s.wants(doctor.Critical, "tables", "rowlock_limit is missing")
		s.OK(schema.Uninstall(s.Context(), s.Env.DB, s.Env.Dialect))
		s.OK(schema.Migrate(s.Context(), s.Env.DB, s.Env.Dialect, schema.Core))
		s.wants(doctor.OK, "tables") // of a set that is not there, none is missing
		s.OK(schema.Migrate(s.Context(), s.Env.DB, s.Env.Dialect))
		s.wants(doctor.OK, "tables")
	})
}

// dropIndex drops the index of rowlock_once on its expiry.
func (s scene) dropIndex() {
	s.Helper()
	query := map[string]string{
		"postgres": `SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = to_regclass('{rowlock_once}') AND NOT indisunique`,
		"sqlite":   `SELECT '"' || name || '"' FROM pragma_index_list(trim('{rowlock_once}', '"')) WHERE NOT "unique"`,
	}[s.Env.Dialect.Name()]
	if query == "" {
		query = "SELECT CONCAT('`', INDEX_NAME, '`') FROM information_schema.STATISTICS WHERE TABLE_NAME = " +
			"REPLACE('{rowlock_once}', '`', '') AND NON_UNIQUE = 1 LIMIT 1"
	}
	var name string
	s.OK(s.Env.DB.QueryRowContext(s.Context(), s.Env.SQL(query)).Scan(&name))
	drop := `DROP INDEX ` + name
	if s.Env.Driver == "mysql" {
		drop += ` ON {rowlock_once}`
	}
	s.Exec(s.Env.DB, drop)
}

func TestStorageThatACrashEmptiesIsFound(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock} SET UNLOGGED`)
		f := s.wants(doctor.Critical, "tables", "UNLOGGED")
		s.Exec(s.Env.DB, f.Cure[0])
		s.wants(doctor.OK, "tables")
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock_queue} ENABLE ROW LEVEL SECURITY`)
		f = s.wants(doctor.Warning, "tables", "row-level security")
		s.Exec(s.Env.DB, f.Cure[0])
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock} DROP CONSTRAINT `+s.Env.Dialect.Names().Prefix+`rowlock_pkey`)
		f = s.wants(doctor.Critical, "tables", "two holders")
		s.Exec(s.Env.DB, f.Cure[0])
		s.wants(doctor.OK, "tables")
	}, "postgres")
	on(t, func(s scene) {
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock_queue} ENGINE = MyISAM`)
		f := s.wants(doctor.Critical, "tables", "MyISAM")
		s.Exec(s.Env.DB, f.Cure[0])
		s.wants(doctor.OK, "tables")
	}, "mysql", "mariadb")
}

// What copies rows into tables that it makes itself keeps neither defaults nor all types. A time
// without its zone is of each session's own zone, so that a lease ends hours too early.
func TestColumnsOfAnotherTypeOrWithoutTheirDefaultAreFound(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock} ALTER expires_at TYPE timestamp`)
		s.wants(doctor.Critical, "tables", "column expires_at", "is timestamp without time zone where", "make timestamp with time zone")
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock} ALTER expires_at TYPE timestamptz`)
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock_queue} ALTER ticket DROP IDENTITY`)
		s.wants(doctor.Critical, "tables", "column ticket", "is bigint where the migrations make bigint with a default")
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock_queue} ALTER ticket ADD GENERATED ALWAYS AS IDENTITY`)
		s.wants(doctor.OK, "tables")
	}, "postgres")
	on(t, func(s scene) {
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock} MODIFY expires_at DATETIME NOT NULL`)
		s.wants(doctor.Critical, "tables", "column expires_at", "is datetime 0 where the migrations make datetime 6")
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock} MODIFY expires_at DATETIME(6) NOT NULL`)
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock_queue} MODIFY ticket BIGINT NOT NULL`)
		s.wants(doctor.Critical, "tables", "column ticket", "is bigint where the migrations make bigint with a default")
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock_queue} MODIFY ticket BIGINT NOT NULL AUTO_INCREMENT`)
		s.wants(doctor.OK, "tables")
	}, "mysql", "mariadb")
}

// A restore that was cut short has the rows of a table, and neither keys nor indexes. On MySQL and
// MariaDB a unique index does not stand for the primary key, because statements name that.
func TestTablesThatHaveLostTheirKeyAreFound(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		for _, table := range []string{
			"rowlock", "rowlock_floor", "rowlock_queue", "rowlock_wait", "rowlock_meta", "rowlock_member", "rowlock_limit",
		} {
			drop := `PRIMARY KEY`
			if s.Is("postgres") {
				drop = `CONSTRAINT ` + s.Env.Dialect.Names().Prefix + table + `_pkey`
			}
			s.Exec(s.Env.DB, `ALTER TABLE {`+table+`} DROP `+drop)
			s.wants(doctor.Critical, "open", s.Env.Table(table)+" has lost its primary key", "checks schema and tables")
			f := s.wants(doctor.Critical, "tables", "primary index", "two holders")
			s.Exec(s.Env.DB, strings.TrimSuffix(f.Cure[0], ";"))
			s.wants(doctor.OK, "tables")
			s.wants(doctor.OK, "open")
		}
	}, "postgres", "mysql", "mariadb")
}

func TestTriggersAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(s scene) {
		name := s.Env.Dialect.Names().Prefix + "trig"
		switch s.Env.Driver {
		case "pgx":
			s.Exec(s.Env.DB, `CREATE FUNCTION `+name+`() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`)
			s.Cleanup(func() { s.Env.Exec(s, `DROP FUNCTION `+name+` CASCADE`) })
			s.Exec(s.Env.DB, `CREATE TRIGGER `+name+` BEFORE UPDATE ON {rowlock} FOR EACH ROW EXECUTE FUNCTION `+name+`()`)
		case "mysql":
			s.Exec(s.Env.DB, `CREATE TRIGGER `+name+` BEFORE UPDATE ON {rowlock} FOR EACH ROW SET NEW.token = OLD.token`)
		default:
			s.Exec(s.Env.DB, `CREATE TRIGGER `+name+` BEFORE UPDATE ON {rowlock} BEGIN SELECT 1; END`)
		}
		s.wants(doctor.Warning, "tables", "the trigger "+name)
	})
}

func TestMissingPrivilegesAreFoundWithWhatFails(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		role, seen := s.User()
		own := scene{seen}
		if s.Is("postgres") {
			own.wants(doctor.Critical, "privileges", "Open, and every lock fails", "GRANT SELECT")
		}
		s.Grant(role)
		if !s.Is("postgres") {
			own.wants(doctor.Info, "privileges", "EvictAfter")
		}
		own.wants(doctor.Info, "privileges", "package once", "GRANT SELECT, INSERT")
		s.Exec(s.Env.DB, `GRANT SELECT, INSERT, UPDATE, DELETE ON {rowlock_once} TO `+role)
		if f := own.finding("privileges"); strings.Contains(f.Summary, "package once") {
			s.Errorf("with the rights of once: %+v", f)
		}
		r := own.examine(quick())
		if r.Worst > doctor.Info {
			s.Errorf("a user with the rights of a client sees %+v", r.Findings)
		}
		for _, cure := range own.finding("privileges").Cure {
			s.Exec(s.Env.DB, strings.TrimSuffix(cure, ";"))
		}
		own.wants(doctor.OK, "privileges")
	}, "postgres", "mysql", "mariadb")
}
