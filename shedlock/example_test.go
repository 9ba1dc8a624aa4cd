package shedlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/shedlock"
)

// A job that Java has in @SchedulerLock(name = "nightly-report") too.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("pgx", "postgres://localhost/app")
	check(err)
	defer db.Close()
	store, err := shedlock.Open(ctx, db, postgres.New())
	check(err)
	locks, err := rowlock.New(store, nil)
	check(err)
	defer locks.Close()

	l, err := locks.TryLock(ctx, "nightly-report")
	if errors.Is(err, rowlock.ErrHeld) {
		fmt.Println(err) // by a Java process, or another one of Go
		return
	}
	check(err)
	defer l.Unlock(ctx)
	fmt.Println("until the lock is lost:", l.Context().Err() == nil)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
