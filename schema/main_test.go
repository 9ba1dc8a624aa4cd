package schema_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// asProcess has a copy of the test program act on a database instead of running tests: what it
// does, the name of the server, the driver, and the data source name, in lines.
const asProcess = "ROWLOCK_SCHEMA_TEST_PROCESS"

func TestMain(m *testing.M) {
	if job := strings.SplitN(os.Getenv(asProcess), "\n", 4); len(job) == 4 {
		if err := act(job[0], job[1], job[2], job[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testdb.AtOnce(8)
	goleak.VerifyTestMain(m)
}

func act(what, name, driver, dsn string) error {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, s := range []server{onSQLite, onPostgres, onMySQL, onMariaDB} {
		switch {
		case s.name != name:
		case what == "migrate":
			return schema.Migrate(context.Background(), db, s.dialect())
		case what == "alone":
			return schema.Alone(context.Background(), db, s.dialect(), func(ctx context.Context) error {
				fmt.Println("begun")
				<-ctx.Done()
				return ctx.Err()
			})
		case what == "idle":
			return schema.Idle(context.Background(), db, s.dialect(), func() { fmt.Println("begun") })
		}
	}
	return fmt.Errorf("no such job: %s on %s", what, name)
}
