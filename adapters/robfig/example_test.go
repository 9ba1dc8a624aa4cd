package cronrowlock_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/robfig/cron/v3"

	cronrowlock "github.com/rowlockdb/rowlock/adapters/robfig"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "robfig")
	check(err)
	defer os.RemoveAll(folder)
	db, err := sqlite.Open(filepath.Join(folder, "app.db"))
	check(err)
	defer db.Close()
	check(schema.Migrate(ctx, db, sqlite.New()))
	locks, err := rowlock.Open(db, sqlite.New(), nil)
	check(err)
	defer locks.Close()

	report := func(ctx context.Context) error {
		l, _ := rowlock.FromContext(ctx)
		return l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			fmt.Println("what tx writes is refused if the lock was lost")
			return nil
		})
	}
	hourly, err := cron.ParseStandard("CRON_TZ=Europe/Berlin 0 * * * *")
	check(err)
	job, err := cronrowlock.New(locks, "report", report, cronrowlock.Config{Schedule: hourly})
	check(err)
	c := cron.New()
	c.Schedule(hourly, job)
	c.Start()
	defer c.Stop()
	job.Run() // as cron does, at the full hour
	// Output: what tx writes is refused if the lock was lost
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
