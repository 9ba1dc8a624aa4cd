package settings_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/servertest/settings"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// modes change what the words of a migration mean, or cut what it reads and writes.
var modes = []settings.Flip{
	{Name: "sql_mode", Value: "EMPTY_STRING_IS_NULL"},
	{Name: "sql_mode", Value: "ORACLE"},
	{Name: "sql_mode", Value: "ANSI,NO_BACKSLASH_ESCAPES"},
	{Name: "sql_mode", Value: "MSSQL"},
	{Name: "sql_mode", Value: ""},
	{Name: "sql_select_limit", Value: "1"},
	{Name: "autocommit", Value: "0"},
	{Name: "default_storage_engine", Value: "MEMORY"},
	{Name: "timestamp", Value: "1"},
	{Name: "sql_safe_updates", Value: "1"},
}

// A migration makes all of its tables and rows, whatever the sessions of its pool are set to.
func TestAMigrationMakesTheSameUnderEveryMode(t *testing.T) {
	for _, k := range testdb.Kinds {
		if k.Driver != "mysql" {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			e := &testdb.Env{Kind: k, Source: k.DSN(t)}
			e.DB = e.Pool(t)
			for _, mode := range modes {
				if accepted(e, mode) == nil {
					t.Run(mode.String(), func(t *testing.T) { migrates(t, e, mode) })
				}
			}
		})
	}
}

func migrates(t *testing.T, e *testdb.Env, mode settings.Flip) {
	t.Helper()
	db, err := flipped(e, []settings.Flip{mode})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	d := e.New(dialect.Prefix(fmt.Sprintf("mode%d_", databases.Add(1))))
	t.Cleanup(func() { _ = schema.Uninstall(context.Background(), e.DB, d) })
	if err := schema.Migrate(t.Context(), db, d); err != nil {
		t.Fatal(err)
	}
	var floors int
	err = e.DB.QueryRowContext(t.Context(), d.Fill(`SELECT COUNT(*) FROM rowlock_floor`)).Scan(&floors)
	if err != nil || floors != 256 {
		t.Errorf("%d floors, %v", floors, err)
	}
}
