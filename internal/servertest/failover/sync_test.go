package failover

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/memstore"
)

// opens reports what Open says with RequireSync.
func opens(db *sql.DB, d dialect.Dialect) error {
	c, err := rowlock.Open(db, d, servertest.Config(func(c *rowlock.Config) { c.RequireSync = true }))
	if err != nil {
		return err
	}
	return c.Close()
}

// refuses fails the test unless Open refuses with want, and says all of says.
func refuses(t *testing.T, db *sql.DB, d dialect.Dialect, want error, says ...string) {
	t.Helper()
	err := opens(db, d)
	if !errors.Is(err, want) || !strings.HasPrefix(err.Error(), "rowlock: ") {
		t.Errorf("got %v, want %v", err, want)
		return
	}
	for _, word := range append(says, "RequireSync") {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	if n := db.Stats().InUse; n > 0 {
		t.Errorf("a refused Open left %d connections", n)
	}
}

func postgresRequiresSync(t *testing.T, p *standby.Pair) {
	d := postgres.New()
	becomes := func(names, says string) {
		t.Helper()
		exec(t, p.DB, `ALTER SYSTEM SET synchronous_standby_names = '`+names+`'`, reload)
		servertest.Eventually(t, says, func() bool {
			err := opens(multiPool(t, p.Source), d)
			return err == nil && says == "" || err != nil && says != "" && strings.Contains(err.Error(), says)
		})
	}
	refuses(t, multiPool(t, p.Source), d, rowlock.ErrNotSynchronous, "synchronous_standby_names is empty",
		"ALTER SYSTEM SET")
	becomes("absent", `is "absent" and no such standby is connected`)
	becomes("ANY 2 (*)", "1 of 2 such standbys are connected")
	becomes("FIRST 2 (a, *)", "1 of 2 such standbys are connected")
	becomes(`"2 (a)", *`, "") // a name
	becomes("ANY 1 (a, *)", "")
	becomes("*", "")
	onOpenedTable(t, multiPool(t, p.Source))
	refuses(t, multiPool(t, p.Source+"&synchronous_commit=local"), d, rowlock.ErrNotSynchronous,
		"synchronous_commit is local", "set it to on")
	if err := opens(multiPool(t, p.Source+"&synchronous_commit=off"), d); err != nil {
		t.Errorf("pinned connections set synchronous_commit for themselves if it is off: %v", err)
	}
	refuses(t, multiPool(t, p.Source+"&default_query_exec_mode=exec"), postgres.New(postgres.Pooled()),
		rowlock.ErrUnsupported, "pooler")
	exec(t, p.DB, `CREATE ROLE plain LOGIN`,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO plain`)
	plain := strings.Replace(p.Source, "postgres@", "plain@", 1)
	refuses(t, multiPool(t, plain), d, rowlock.ErrPrivilege, "GRANT pg_read_all_stats")
	exec(t, p.DB, `GRANT pg_read_all_stats TO plain`)
	if err := opens(multiPool(t, plain), d); err != nil {
		t.Errorf("a user who may see the standby: %v", err)
	}
}

func TestStoresWithoutReplicasAreRefused(t *testing.T) {
	servertest.On(t, "sqlite", func(s *servertest.Scene) {
		refuses(s.T, s.Env.DB, s.Env.Dialect, rowlock.ErrUnsupported, "sqlite", "leave it out")
	})
	c, err := rowlock.New(memstore.New(), &rowlock.Config{RequireSync: true})
	if !errors.Is(err, rowlock.ErrUnsupported) || !strings.Contains(err.Error(), "OpenTable") {
		t.Errorf("a store in memory: %v, %v, want ErrUnsupported", c, err)
	}
}

// onOpenedTable shows that New takes a table that was opened with the same setting, and no other.
func onOpenedTable(t *testing.T, db *sql.DB) {
	t.Helper()
	strict := servertest.Config(func(c *rowlock.Config) { c.RequireSync = true })
	for _, cfg := range []*rowlock.Config{strict, servertest.Config()} {
		table, err := rowlock.OpenTable(db, postgres.New(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		c, err := rowlock.New(table, strict)
		if cfg.RequireSync != (err == nil) {
			t.Errorf("New on a table with RequireSync = %t: %v", cfg.RequireSync, err)
		}
		if err == nil {
			_ = c.Close()
		}
		_ = table.Close()
	}
}
