package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
	"github.com/rowlockdb/rowlock/semaphore"
)

// An order is changed, the stock is read, and one of two printers is used: all at once, or nothing.
func ExampleSemaphore_Permits() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "semaphore")
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
	locks, err := rowlock.Open(db, sqlite.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	printers, err := semaphore.New(locks, "printers", 2)
	if err != nil {
		log.Fatal(err)
	}
	l, err := locks.LockEach(ctx, []rowlock.Part{
		rowlock.Exclusive("order/7"), rowlock.Shared("stock/9"), printers.Permits(1),
	})
	if err != nil {
		log.Fatal(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := l.Fence(ctx, tx); err != nil { // all three are still held, until tx has ended
		log.Fatal(err)
	}
	fmt.Println(len(l.Keys()), "locks,", len(printers.Slots(l)), "of them a printer")
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
	_, err = locks.TryLockEach(ctx, []rowlock.Part{
		rowlock.Shared("stock/9"), printers.Permits(2),
	})
	fmt.Println(err)
	if err := l.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 3 locks, 1 of them a printer
	// rowlock: "semaphore/printers" is held
}

// Two reports are made at a time, by all processes together. Then the machine gets larger.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "semaphore")
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
	locks, err := rowlock.Open(db, sqlite.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	reports, err := semaphore.New(locks, "reports", 2)
	if err != nil {
		log.Fatal(err)
	}
	first, err := reports.Acquire(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	_, err = reports.TryAcquire(ctx, 1)
	fmt.Println(err, errors.Is(err, rowlock.ErrHeld))
	if err := reports.Resize(ctx, 3); err != nil {
		log.Fatal(err)
	}
	second, err := reports.Acquire(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("slot", second.ID())
	for _, p := range []*semaphore.Permit{first, second} {
		if err := p.Release(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// rowlock: semaphore "reports": fewer than 1 of its 2 permits are free true
	// slot 2
}
