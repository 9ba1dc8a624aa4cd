package election_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/schema"
)

// A scheduler that runs in every process and works in one. What it writes, it writes in its term.
func Example() {
	ctx, stop := context.WithCancel(context.Background()) // or signal.NotifyContext
	defer stop()
	dir, err := os.MkdirTemp("", "election")
	check(err)
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "app.db"))
	check(err)
	defer db.Close()
	check(schema.Migrate(ctx, db, sqlite.New()))
	_, err = db.ExecContext(ctx, `CREATE TABLE plan (job TEXT PRIMARY KEY)`)
	check(err)
	locks, err := rowlock.Open(db, sqlite.New(), &rowlock.Config{Identity: "web-1"})
	check(err)
	defer locks.Close()

	plan := func(ctx context.Context, l *rowlock.Lock, job string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := l.Fence(ctx, tx); err != nil { // refused in a later term
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO plan VALUES (?)`, job); err != nil {
			return err
		}
		return tx.Commit()
	}
	err = election.Run(ctx, locks, "scheduler", func(ctx context.Context, l *rowlock.Lock) error {
		if err := plan(ctx, l, "nightly report"); err != nil {
			return err
		}
		leader, err := election.Leader(ctx, locks, "scheduler")
		fmt.Println("led by", leader.Identity, "in its own term:", leader.Number == l.Token(), err)
		stop() // the process is asked to end
		<-ctx.Done()
		return ctx.Err()
	}, election.With(rowlock.Note("plans jobs")))
	fmt.Println("ended:", err)
	// Output:
	// led by web-1 in its own term: true <nil>
	// ended: <nil>
}

// A proxy sends writes to the leader, as far as it knows.
func ExampleObserve() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	locks, done := inMemory("web-2")
	defer done()

	ended := make(chan error)
	go func() {
		ended <- election.Run(ctx, locks, "writer",
			func(ctx context.Context, l *rowlock.Lock) error {
				<-ctx.Done()
				return ctx.Err()
			}, election.With(rowlock.Note("http://10.0.0.2")))
	}()
	for leader, err := range election.Observe(ctx, locks, "writer") {
		switch {
		case err != nil: // the database cannot be read: the last leader may be another by now
		case leader.IsVacant():
		default:
			fmt.Println("writes go to", leader.Note)
			stop() // ends the loop, and the leader
		}
	}
	fmt.Println(<-ended)
	// Output:
	// writes go to http://10.0.0.2
	// <nil>
}

// The candidate in the region that the data are in leads, if there is one.
func ExamplePrefer() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	locks, done := inMemory("web-3")
	defer done()
	region := "eu"

	err := election.Run(ctx, locks, "writer", func(context.Context, *rowlock.Lock) error {
		fmt.Println(region, "leads")
		stop()
		return nil
	}, election.Prefer(region == "eu"))
	fmt.Println(err)
	// Output:
	// eu leads
	// <nil>
}

// inMemory is a client without a database.
func inMemory(identity string) (locks *rowlock.Client, done func()) {
	locks, err := rowlock.New(memstore.New(), &rowlock.Config{Identity: identity})
	check(err)
	return locks, func() { check(locks.Close()) }
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
