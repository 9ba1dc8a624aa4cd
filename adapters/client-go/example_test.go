package leaderrowlock_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	leaderrowlock "github.com/rowlockdb/rowlock/adapters/client-go"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

func Example() {
	ctx, stop := context.WithCancel(context.Background())
	folder, err := os.MkdirTemp("", "client-go")
	check(err)
	defer os.RemoveAll(folder)
	db, err := sqlite.Open(filepath.Join(folder, "app.db"))
	check(err)
	defer db.Close()
	check(schema.Migrate(ctx, db, sqlite.New()))
	locks, err := rowlock.Open(db, sqlite.New(), nil)
	check(err)
	defer locks.Close()

	lead := func(ctx context.Context) {
		defer stop() // the process ends: others go on until ctx ends
		l, _ := rowlock.FromContext(ctx)
		check(l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			fmt.Println("what tx writes is refused if another leads")
			return nil
		}))
	}
	lock, err := leaderrowlock.New(locks, "controller", "web-1") // or the pod's name
	check(err)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		ReleaseOnCancel: true,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lock.Leading(lead),
			OnStoppedLeading: func() {},
		},
	})
	// Output: what tx writes is refused if another leads
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
