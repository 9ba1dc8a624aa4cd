package rowlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// refused opens what must not open: with the error wanted, which says how to do better, and with nothing left behind.
func (s *scene) refused(db rowlock.DB, d dialect.Dialect, want error, says ...string) {
	s.Helper()
	s.refusedWith(sceneConfig(), db, d, want, says...)
}

func (s *scene) refusedWith(cfg *rowlock.Config, db rowlock.DB, d dialect.Dialect, want error, says ...string) {
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
	for _, slip := range []string{"<nil>", "%!", "rowlock: rowlock:", "outcome unknown"} {
		if strings.Contains(err.Error(), slip) {
			s.Errorf("%q says %q", err, slip)
		}
	}
	if n := db.Stats().InUse; n != 0 {
		s.Errorf("%d connections are still in use", n)
	}
}

func TestOpenRefusesMissingTables(t *testing.T) {
	eachScene(t, func(s *scene) {
		s.refused(s.env.DB, s.env.New(dialect.Prefix("absent_")), rowlock.ErrNoSchema, "absent_rowlock", "schema.Migrate")
		for _, table := range []string{"rowlock_meta", "rowlock_queue", "rowlock_floor", "rowlock"} {
			s.exec(s.env.DB, `DROP TABLE {`+table+`}`)
			s.refused(s.env.DB, s.env.Dialect, rowlock.ErrNoSchema, s.env.Table(table), "schema.Migrate")
		}
	})
}

func TestOpenRefusesHalfMadeTables(t *testing.T) {
	eachScene(t, func(s *scene) {
		s.exec(s.env.DB, `DELETE FROM {rowlock_meta} WHERE name = 'instance'`)
		s.refused(s.env.DB, s.env.Dialect, rowlock.ErrNoSchema, "instance", "schema.Migrate")
		s.exec(s.env.DB, `DELETE FROM {rowlock_floor} WHERE bucket > 0`)
		s.refused(s.env.DB, s.env.Dialect, rowlock.ErrNoSchema, "rowlock_floor has 1 rows", "256", "schema.Migrate")
	})
}

func TestOpenRefusesAnotherSchemaVersion(t *testing.T) {
	eachScene(t, func(s *scene) {
		set := func(version string) {
			s.exec(s.env.DB, `UPDATE {rowlock_meta} SET value = ? WHERE name = 'schema_version'`, version)
		}
		set("0")
		s.refused(s.env.DB, s.env.Dialect, rowlock.ErrSchemaVersion, "version 0", "needs 1", "schema.Migrate")
		set("7")
		s.refused(s.env.DB, s.env.Dialect, rowlock.ErrSchemaVersion, "version 7", "knows only 1", "upgrade")
		for _, nonsense := range []string{"one", "", " 1", "1.0", "99999999999999999999"} {
			set(nonsense)
			s.refused(s.env.DB, s.env.Dialect, rowlock.ErrCorrupt, fmt.Sprintf("%q", nonsense), "schema.Migrate")
		}
		s.exec(s.env.DB, `DELETE FROM {rowlock_meta} WHERE name = 'schema_version'`)
		s.refused(s.env.DB, s.env.Dialect, rowlock.ErrNoSchema, "schema_version", "schema.Migrate")
	})
}

func TestOpenRefusesAnotherProduct(t *testing.T) {
	eachScene(t, func(s *scene) {
		for _, k := range testdb.Kinds {
			if k.Driver == s.env.Driver {
				continue
			}
			s.part(k.Name, func(s *scene) {
				d := k.New(dialect.Prefix(s.env.Dialect.Names().Prefix))
				s.refused(s.env.Pool(s), d, rowlock.ErrWrongDialect, d.Name()+".New()")
			})
		}
	})
}

func TestOpenRefusesAPoolTooSmall(t *testing.T) {
	eachScene(t, func(s *scene) {
		least := 3
		if s.is("sqlite") {
			least = 2
		}
		db := s.env.Pool(s)
		for limit := 1; limit < least; limit++ {
			db.SetMaxOpenConns(limit)
			s.refused(db, s.env.Dialect, rowlock.ErrPool, fmt.Sprintf("MaxOpenConns (%d)", limit), fmt.Sprintf("at least %d", least))
		}
		db.SetMaxOpenConns(least)
		l := s.take(s.clientOn(db), "k")
		tx := s.begin(db, nil) // the one that is left
		s.ok(l.Fence(s.Context(), tx))
		s.ok(tx.Commit())
		if s.is("sqlite") {
			return // one connection writes, whatever is asked for
		}
		db = s.env.Pool(s)
		db.SetMaxOpenConns(6)
		cfg := sceneConfig(func(c *rowlock.Config) { c.Lanes = 6 })
		s.refusedWith(cfg, db, s.env.Dialect, rowlock.ErrPool, "MaxOpenConns (6)", "at least 7")
	})
}

// Names cannot be bound as parameters, so that what is not a plain identifier must not come near a statement.
func TestOpenRefusesNamesThatAreNoIdentifiers(t *testing.T) {
	eachScene(t, func(s *scene) {
		tables := s.number(`SELECT count(*) FROM {rowlock_floor}`)
		for _, bad := range []string{
			`"`, "`", "'", "a b", "a-b", "a.b", "1a", "é", "a\x00", "a\n", `a"; DROP TABLE ` + s.env.Table("rowlock_floor") + `; --`,
			"a`; DROP TABLE " + s.env.Table("rowlock_floor") + "; -- ", strings.Repeat("a", 41), "a/*", "$1", "?",
		} {
			s.refused(s.env.DB, s.env.New(dialect.Prefix(bad)), rowlock.ErrConfig, "table prefix", fmt.Sprintf("%q", bad), "letters, digits")
			s.refused(s.env.DB, s.env.New(dialect.Schema(bad)), rowlock.ErrConfig, "schema", fmt.Sprintf("%q", bad))
		}
		if got := s.number(`SELECT count(*) FROM {rowlock_floor}`); got != tables {
			s.Errorf("%d floors are left of %d", got, tables)
		}
	})
}

func TestOpenRefusesASchemaThatIsNotThere(t *testing.T) {
	eachScene(t, func(s *scene) {
		want, says := rowlock.ErrNoSchema, "schema.Migrate"
		if s.is("sqlite") {
			want, says = rowlock.ErrConfig, "table prefix"
		}
		s.refused(s.env.DB, s.env.New(dialect.Schema("nowhere")), want, "nowhere", says)
	})
}

// A longest name must be whole: a database that cut names off could give two prefixes one table.
func TestTheLongestPrefixIsAPrefix(t *testing.T) {
	eachScene(t, func(s *scene) {
		prefix := fmt.Sprintf("%-39s", s.env.Dialect.Names().Prefix)
		prefix = strings.ReplaceAll(prefix, " ", "p")
		one, two := s.migrated(s.env.Source, dialect.Prefix(prefix+"1")), s.migrated(s.env.Source, dialect.Prefix(prefix+"2"))
		one.take(one.client(), "k")
		two.take(two.client(), "k")
	})
}
