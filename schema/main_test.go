package schema_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

// migrateFile names the SQLite file that a copy of the test program migrates instead of running
// tests.
const migrateFile = "ROWLOCK_SCHEMA_TEST_FILE"

func TestMain(m *testing.M) {
	if file := os.Getenv(migrateFile); file != "" {
		if err := migrateOnce(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func migrateOnce(file string) error {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return err
	}
	defer db.Close()
	return schema.Migrate(context.Background(), db, sqlite.New())
}
