package transition_test

import (
	"context"
	"database/sql"
	"fmt"
	"hash/crc32"
	"log"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/transition"
)

// The second of three deployments: the first had pg_advisory_lock alone, the third has New.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("pgx", "postgres://localhost/app")
	check(err)
	defer db.Close()
	store, err := rowlock.OpenTable(db, postgres.New(), nil)
	check(err)
	defer store.Close()
	client, err := rowlock.Open(db, postgres.New(), nil)
	check(err)
	defer client.Close()
	locks, err := transition.Start(ctx, transition.Config{
		Stage: transition.Both,
		Old: transition.Advisory(db, func(key string) int64 {
			return int64(crc32.ChecksumIEEE([]byte(key))) // as the program has it
		}),
		Locks: client, Notices: store,
	})
	check(err)

	l, err := locks.Lock(ctx, "nightly")
	check(err)
	defer l.Unlock(ctx)
	fmt.Println("fenced from now on, with token", l.Ours().Token())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
