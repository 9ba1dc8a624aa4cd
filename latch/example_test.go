package latch_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/schema"
)

// Three shards are imported, by any processes, and the report waits for all of them. A shard that
// is imported twice counts once.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "latch")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "app.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := schema.Migrate(ctx, db, sqlite.New()); err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, `CREATE TABLE imported (shard TEXT)`); err != nil {
		log.Fatal(err)
	}
	latches, err := latch.New(db, sqlite.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer latches.Close()

	shards, err := latches.Open(ctx, "import-7", 3)
	if err != nil {
		log.Fatal(err)
	}
	// The rows of a shard and its count are committed together.
	load := func(shard string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, `INSERT INTO imported (shard) VALUES (?)`, shard); err != nil {
			return err
		}
		if err := shards.CountDownTx(ctx, tx, shard); err != nil {
			return err
		}
		return tx.Commit()
	}
	for _, shard := range []string{"a", "b", "b"} {
		if err := load(shard); err != nil {
			log.Fatal(err)
		}
	}
	lacks, err := shards.Count(ctx)
	fmt.Println("shards to come:", lacks, err)
	var wg sync.WaitGroup
	wg.Go(func() { fmt.Println("all imported:", shards.Await(ctx)) })
	if err := load("c"); err != nil {
		log.Fatal(err)
	}
	shards.Wake()
	wg.Wait()
	// Output:
	// shards to come: 1 <nil>
	// all imported: <nil>
}

// Two workers begin together and end together.
func ExampleBarrier() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "latch")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "app.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := schema.Migrate(ctx, db, sqlite.New()); err != nil {
		log.Fatal(err)
	}
	latches, err := latch.New(db, sqlite.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer latches.Close()

	barrier, err := latches.Barrier(ctx, "benchmark", 2)
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, worker := range []string{"w1", "w2"} {
		wg.Go(func() {
			if err := barrier.Enter(ctx, worker); err != nil { // until both are here
				log.Fatal(err)
			}
			fmt.Println("at work")
			if err := barrier.Leave(ctx, worker); err != nil { // until both are done
				log.Fatal(err)
			}
			fmt.Println("both are done")
		})
	}
	wg.Wait()
	// Output:
	// at work
	// at work
	// both are done
	// both are done
}
