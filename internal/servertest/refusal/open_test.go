package refusal

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// refused fails the test unless Open returns the error wanted, which says how to do better, and
// leaves nothing behind.
func refused(s *servertest.Scene, db rowlock.DB, d dialect.Dialect, want error, says ...string) {
	s.Helper()
	refusedWith(s, servertest.Config(), db, d, want, says...)
}

func refusedWith(s *servertest.Scene, cfg *rowlock.Config, db rowlock.DB, d dialect.Dialect,
	want error, says ...string,
) {
	s.Helper()
	c, err := rowlock.Open(db, d, cfg)
	if err == nil {
		_ = c.Close()
		s.Fatalf("opened, want %v", want)
	}
	if c != nil {
		s.Error("a client came with the error")
	}
	if !errors.Is(err, want) {
		s.Errorf("got %q, want %q", err, want)
	}
	for _, word := range says {
		if !strings.Contains(err.Error(), word) {
			s.Errorf("%q does not say %q", err, word)
		}
	}
	for _, slip := range []string{"<nil>", "%!", "rowlock: rowlock:", "outcome unknown", `connect ""`, `probe ""`} {
		if strings.Contains(err.Error(), slip) {
			s.Errorf("%q says %q", err, slip)
		}
	}
	if n := db.Stats().InUse; n != 0 {
		s.Errorf("%d connections are still in use", n)
	}
}

func TestOpenRefusesMissingTables(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		refused(s, s.Env.DB, s.Env.New(dialect.Prefix("absent_")), rowlock.ErrNoSchema, "absent_rowlock",
			"schema.Migrate")
		for _, table := range []string{"rowlock_meta", "rowlock_queue", "rowlock_floor", "rowlock"} {
			s.Exec(s.Env.DB, `DROP TABLE {`+table+`}`)
			refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrNoSchema, s.Env.Table(table), "schema.Migrate")
		}
	})
}

func TestOpenRefusesHalfMadeTables(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		s.Exec(s.Env.DB, `DELETE FROM {rowlock_meta} WHERE name = 'instance'`)
		refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrNoSchema, "instance", "backup")
		s.Exec(s.Env.DB, `DELETE FROM {rowlock_floor} WHERE bucket > 0`)
		refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrNoSchema, "rowlock_floor has 1 rows", "256",
			"backup")
	})
}

func TestOpenRefusesAnotherSchemaVersion(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		set := func(version string) {
			s.Exec(s.Env.DB, `UPDATE {rowlock_meta} SET value = ? WHERE name = 'schema_version'`, version)
		}
		set("0")
		refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrSchemaVersion, "version 0",
			fmt.Sprint("needs ", schema.Version), "schema.Migrate")
		for _, unreleased := range []string{"1", "2"} {
			set(unreleased)
			refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrSchemaVersion, "version "+unreleased, "never released", "schema.Uninstall")
		}
		s.Exec(s.Env.DB, `UPDATE {rowlock_meta} SET value = '7' WHERE name = 'compatible_from'`)
		set("7")
		refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrSchemaVersion, "version 7",
			fmt.Sprint("knows only ", schema.Version), "upgrade")
		for _, nonsense := range []string{"one", "", " 1", "1.0", "99999999999999999999"} {
			set(nonsense)
			refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrCorrupt, fmt.Sprintf("%q", nonsense),
				"set it to the version the tables have")
		}
		s.Exec(s.Env.DB, `DELETE FROM {rowlock_meta} WHERE name = 'compatible_from'`)
		set("7")
		refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrSchemaVersion, "version 7")
		s.Exec(s.Env.DB, `DELETE FROM {rowlock_meta} WHERE name = 'schema_version'`)
		refused(s, s.Env.DB, s.Env.Dialect, rowlock.ErrNoSchema, "schema_version", "schema.Migrate")
	})
}

func TestOpenRefusesAnotherProduct(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		for _, k := range testdb.Kinds {
			if k.Driver == s.Env.Driver {
				continue
			}
			s.Part(k.Name, func(s *servertest.Scene) {
				d := k.New(dialect.Prefix(s.Env.Dialect.Names().Prefix))
				refused(s, s.Env.Pool(s), d, rowlock.ErrWrongDialect, d.Name()+".New()")
			})
		}
	})
}

func TestOpenRefusesAPoolTooSmall(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		least := 3
		if s.Is("sqlite") {
			least = 2
		}
		db := s.Env.Pool(s)
		for limit := 1; limit < least; limit++ {
			db.SetMaxOpenConns(limit)
			refused(s, db, s.Env.Dialect, rowlock.ErrPool, fmt.Sprintf("MaxOpenConns (%d)", limit),
				fmt.Sprintf("at least %d", least))
		}
		db.SetMaxOpenConns(least)
		l := s.Take(s.ClientOn(db), "k")
		tx := s.Begin(db, nil) // the one that is left
		s.OK(l.Fence(s.Context(), tx))
		s.OK(tx.Commit())
		if s.Is("sqlite") {
			return // one connection writes, whatever is asked for
		}
		db = s.Env.Pool(s)
		db.SetMaxOpenConns(6)
		cfg := servertest.Config(func(c *rowlock.Config) { c.Connections = 6 })
		refusedWith(s, cfg, db, s.Env.Dialect, rowlock.ErrPool, "MaxOpenConns (6)", "at least 7")
	})
}

// Names cannot be bound as parameters: what is not a plain identifier must not come near a
// statement.
func TestOpenRefusesNamesThatAreNoIdentifiers(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		tables := s.Number(`SELECT count(*) FROM {rowlock_floor}`)
		for _, bad := range []string{
			`"`, "`", "'", "a b", "a-b", "a.b", "1a", "é", "a\x00", "a\n",
			`a"; DROP TABLE ` + s.Env.Table("rowlock_floor") + `; --`,
			"a`; DROP TABLE " + s.Env.Table("rowlock_floor") + "; -- ", strings.Repeat("a", 41), "a/*", "$1",
			"?",
		} {
			refused(s, s.Env.DB, s.Env.New(dialect.Prefix(bad)), rowlock.ErrConfig, "table prefix",
				fmt.Sprintf("%q", bad), "letters, digits")
			refused(s, s.Env.DB, s.Env.New(dialect.Schema(bad)), rowlock.ErrConfig, "schema",
				fmt.Sprintf("%q", bad))
		}
		if got := s.Number(`SELECT count(*) FROM {rowlock_floor}`); got != tables {
			s.Errorf("%d floors are left of %d", got, tables)
		}
	})
}

func TestOpenRefusesASchemaThatIsNotThere(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		want, says := rowlock.ErrNoSchema, "schema.Migrate"
		if s.Is("sqlite") {
			want, says = rowlock.ErrConfig, "table prefix"
		}
		refused(s, s.Env.DB, s.Env.New(dialect.Schema("nowhere")), want, "nowhere", says)
	})
}

// The longest name must be kept whole: a database that cut names off could give two prefixes one
// table.
func TestTheLongestPrefixIsAPrefix(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		prefix := fmt.Sprintf("%-39s", s.Env.Dialect.Names().Prefix)
		prefix = strings.ReplaceAll(prefix, " ", "p")
		one, two := s.Migrated(s.Env.Source, dialect.Prefix(prefix+"1")),
			s.Migrated(s.Env.Source, dialect.Prefix(prefix+"2"))
		one.Take(one.Client(), "k")
		two.Take(two.Client(), "k")
	})
}
