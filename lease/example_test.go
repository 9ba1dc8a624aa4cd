package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// quota stands before a store, and refuses requests beyond a number.
type quota struct {
	lease.Store
	left int
}

var errQuota = errors.New("no more locks today")

func (q *quota) Acquire(
	ctx context.Context, reqs []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	if q.left -= len(reqs); q.left < 0 {
		return nil, errQuota
	}
	return q.Store.Acquire(ctx, reqs)
}

// Unwrap lets a client find the other abilities of the store beneath.
func (q *quota) Unwrap() lease.Store { return q.Store }

// A store of your own stands before another one.
func ExampleWrapper() {
	ctx := context.Background()
	store := &quota{Store: memstore.New(), left: 1}
	locks, err := rowlock.New(store, &rowlock.Config{
		Reaper: rowlock.ReaperConfig{Off: true}, // its election would be counted too
	})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	l, err := locks.TryLock(ctx, "a")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Unlock(ctx)
	_, err = locks.TryLock(ctx, "b")
	fmt.Println(errors.Is(err, errQuota))
	// Output:
	// true
}

// A program that makes keys of what users type can refuse a bad one before it asks a database.
func ExampleCheckKey() {
	fmt.Println(lease.CheckKey("invoice/42"))
	fmt.Println(lease.CheckKey(""))
	// Output:
	// <nil>
	// rowlock: invalid key: it is empty; a key has 1 to 255 bytes
}
