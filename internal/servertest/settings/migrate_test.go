package settings_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/internal/servertest/settings"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// modes change what the words of a migration mean, or cut what it reads and writes. The lists have
// more settings, and few values of each.
var modes = map[string][]settings.Flip{
	"pgx": {
		{Name: "search_path", Value: "public, pg_catalog"},
		{Name: "default_transaction_isolation", Value: "serializable"},
		{Name: "default_transaction_deferrable", Value: "on"},
		{Name: "check_function_bodies", Value: "off"},
		{Name: "allow_system_table_mods", Value: "on"},
		{Name: "statement_timeout", Value: "1000"},
		{Name: "lock_timeout", Value: "1"},
	},
	"mysql": {
		{Name: "sql_mode", Value: "EMPTY_STRING_IS_NULL"},
		{Name: "sql_mode", Value: "ORACLE"},
		{Name: "sql_mode", Value: "ANSI,NO_BACKSLASH_ESCAPES"},
		{Name: "sql_mode", Value: "MSSQL"},
		{Name: "sql_mode", Value: "PAD_CHAR_TO_FULL_LENGTH,IGNORE_SPACE,NO_UNSIGNED_SUBTRACTION"},
		{Name: "sql_mode", Value: "NO_TABLE_OPTIONS,NO_KEY_OPTIONS,NO_FIELD_OPTIONS"},
		{Name: "sql_mode", Value: ""},
		{Name: "sql_select_limit", Value: "1"},
		{Name: "autocommit", Value: "0"},
		{Name: "default_storage_engine", Value: "MEMORY"},
		{Name: "explicit_defaults_for_timestamp", Value: "0"},
		{Name: "sql_require_primary_key", Value: "1"},
		{Name: "sql_generate_invisible_primary_key", Value: "1"},
		{Name: "innodb_compression_default", Value: "1"},
		{Name: "foreign_key_checks", Value: "0"},
		{Name: "timestamp", Value: "1"},
		{Name: "sql_safe_updates", Value: "1"},
	},
	"sqlite": {
		{Name: "legacy_alter_table", Value: "1"},
		{Name: "foreign_keys", Value: "1"},
		{Name: "writable_schema", Value: "1"},
		{Name: "recursive_triggers", Value: "1"},
	},
}

// A migration makes all of its tables and rows, whatever the sessions of its pool are set to.
func TestAMigrationMakesTheSameUnderEveryMode(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for _, k := range testdb.Drawn(t, testdb.Kinds) {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			e := k.Open(t)
			for _, mode := range modes[k.Driver] {
				if accepted(e, mode) != nil {
					continue
				}
				db, err := flipped(e, []settings.Flip{mode})
				if err != nil {
					t.Fatal(err)
				}
				if err := settings.Migrations(t.Context(), db, e, e); err != nil {
					t.Errorf("%s: %v", mode, err)
				}
				_ = db.Close()
			}
		})
	}
}

// What a database does to every table that is made in it stops a migration, which says so and
// leaves nothing.
func TestAnEventTriggerIsNamedByAMigration(t *testing.T) {
	t.Parallel()
	direct, _ := ownDatabase(t)
	role := fmt.Sprintf("watched_%d", os.Getpid())
	direct.Exec(t, `CREATE ROLE `+role+` LOGIN`)
	t.Cleanup(func() {
		direct.Exec(t, `DROP OWNED BY `+role)
		direct.Exec(t, `DROP ROLE `+role)
	})
	direct.Exec(t, `GRANT ALL ON SCHEMA public TO `+role)
	db, err := flipped(direct, []settings.Flip{{Name: "role", Value: role}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for does, says := range map[string]string{
		`RAISE EXCEPTION 'ask the platform team'`: "ask the platform team",
		forced: "row-level security",
	} {
		direct.Exec(t, `CREATE OR REPLACE FUNCTION watch() RETURNS event_trigger LANGUAGE plpgsql AS $$
			DECLARE made record; BEGIN `+does+`; END $$`)
		direct.Exec(t, `CREATE EVENT TRIGGER watch ON ddl_command_end WHEN TAG IN ('CREATE TABLE')
			EXECUTE FUNCTION watch()`)
		d := direct.New(dialect.Prefix("watched_"))
		if err := schema.Migrate(t.Context(), db, d); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error that says %q", err, says)
		}
		direct.Exec(t, `DROP EVENT TRIGGER watch`)
		var left int
		err := direct.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_class WHERE relname LIKE 'watched%'`).Scan(&left)
		if err != nil || left != 0 {
			t.Errorf("%d tables are left, %v", left, err)
		}
	}
}

// forced is what some databases do to every table: of one that has no policy its owner sees no row.
const forced = `FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE object_type = 'table' LOOP
	EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', made.object_identity);
	EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', made.object_identity); END LOOP`
