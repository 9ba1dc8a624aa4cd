package gocronrowlock_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/go-co-op/gocron/v2"

	gocronrowlock "github.com/rowlockdb/rowlock/adapters/gocron"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "gocron")
	check(err)
	defer os.RemoveAll(folder)
	db, err := sqlite.Open(filepath.Join(folder, "app.db"))
	check(err)
	defer db.Close()
	check(schema.Migrate(ctx, db, sqlite.New()))
	locks, err := rowlock.Open(db, sqlite.New(), nil)
	check(err)
	defer locks.Close()

	done := make(chan struct{})
	report := func(ctx context.Context) error {
		defer close(done)
		l, _ := rowlock.FromContext(ctx)
		return l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			fmt.Println("what tx writes is refused if the lock was lost")
			return nil
		})
	}
	locker := gocronrowlock.NewLocker(locks, rowlock.MinHold(50*time.Minute))
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	check(err)
	_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), // or gocron.CronJob("0 * * * *", false)
		locker.Task(report), gocron.WithName("report"))
	check(err)
	s.Start()
	<-done
	check(s.Shutdown())
	// Output: what tx writes is refused if the lock was lost
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
