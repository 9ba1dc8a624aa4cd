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

// An order is changed, the stock is read, and one of two printers is used: the permit comes first.
func ExampleSemaphore_Acquire() {
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
	change := func() error {
		p, err := printers.Acquire(ctx, 1)
		if err != nil {
			return err
		}
		defer p.Release(ctx)
		stock, err := locks.RLockAll(p.Context(), []string{"stock/9"})
		if err != nil {
			return err
		}
		defer stock.Unlock(ctx)
		order, err := locks.Lock(stock.Context(), "order/7")
		if err != nil {
			return err
		}
		defer order.Unlock(ctx)
		tx, err := db.BeginTx(order.Context(), nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for _, of := range []interface {
			Fence(context.Context, rowlock.Tx) error
		}{p, stock, order} {
			if err := of.Fence(ctx, tx); err != nil { // all three are still held, until tx has ended
				return err
			}
		}
		fmt.Println(len(p.Slots()), "printer,", stock.Keys(), "and", order.Key())
		return tx.Commit()
	}
	if err := change(); err != nil {
		log.Fatal(err)
	}
	// Output: 1 printer, [stock/9] and order/7
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
