package wlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/wlock"
)

// A key that Java clients lock with WDistributedLock too.
func Example() {
	ctx := context.Background()
	store, err := wlock.Open(ctx, wlock.Config{
		Registry: []string{"wlock-registry:22020"}, Cluster: "default_key",
	})
	check(err)
	defer store.Close()
	locks, err := rowlock.New(store, nil)
	check(err)
	defer locks.Close()

	l, err := locks.TryLock(ctx, "order:1001")
	if errors.Is(err, rowlock.ErrHeld) {
		fmt.Println(err) // by a Java process, or another one of Go
		return
	}
	check(err)
	defer l.Unlock(ctx)
	fmt.Println("give this to tokenfence.Pass beside the data:", l.Token())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
