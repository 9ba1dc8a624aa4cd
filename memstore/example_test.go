package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/memstore"
)

// A test of two processes has two clients on one store.
func Example() {
	ctx := context.Background()
	store := memstore.New()
	web1, err := rowlock.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer web1.Close()
	web2, err := rowlock.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer web2.Close()

	first, err := web1.TryLock(ctx, "invoice/42", rowlock.Note("web-1"))
	if err != nil {
		log.Fatal(err)
	}
	_, err = web2.TryLock(ctx, "invoice/42")
	var held *rowlock.HeldError
	fmt.Println(errors.As(err, &held), held.Note)

	if err := first.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
	second, err := web2.TryLock(ctx, "invoice/42")
	if err != nil {
		log.Fatal(err)
	}
	defer second.Unlock(ctx)
	fmt.Println(second.Token() > first.Token())
	// Output:
	// true web-1
	// true
}

// What does a program do when its lock is lost? Expire loses it.
func ExampleStore_Expire() {
	ctx := context.Background()
	store := memstore.New()
	locks, err := rowlock.New(store, &rowlock.Config{
		TTL:    300 * time.Millisecond, // the loss is noticed with the next renewal
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "report", func(ctx context.Context, l *rowlock.Lock) error {
		store.Expire("report")
		<-ctx.Done() // the work must stop here
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, rowlock.ErrLost))
	// Output:
	// true
}

// Waiters need no notifications: a poll finds the key within Config.PollMax.
func ExampleStore_DropHints() {
	ctx := context.Background()
	store := memstore.New()
	store.DropHints(true)
	var clients []*rowlock.Client
	for range 2 {
		c, err := rowlock.New(store, &rowlock.Config{PollMax: 20 * time.Millisecond})
		if err != nil {
			log.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
	}

	l, err := clients[0].Lock(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	go l.Unlock(ctx)
	next, err := clients[1].Lock(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	defer next.Unlock(ctx)
	fmt.Println("locked", next.Key())
	// Output:
	// locked report
}
