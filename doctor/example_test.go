package doctor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/schema"
)

// A health check that tells a monitor what is worse than good to know.
func ExampleExamine() {
	dir, err := os.MkdirTemp("", "doctor")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "app.db"), "synchronous(OFF)")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	ctx := context.Background()
	if err := schema.Migrate(ctx, db, sqlite.New()); err != nil {
		panic(err)
	}

	report, err := doctor.Examine(ctx, db, sqlite.New(), nil)
	if err != nil {
		panic(err)
	}
	for _, f := range report.Findings {
		if f.Severity >= doctor.Warning {
			fmt.Println(f.Severity, f.ID, f.Evidence[1].Name, f.Evidence[1].Value)
		}
	}
	// Output: critical durability synchronous OFF
}
