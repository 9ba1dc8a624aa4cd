package watchdog_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/watchdog"
)

// holder has functions for what a program does when its lease is over.
type holder struct {
	end func(cause error)
	ctx context.Context
}

func (h holder) End(cause error)          { h.end(cause) }
func (h holder) Context() context.Context { return cmp.Or(h.ctx, context.Background()) }

// A Watchdog keeps the leases of any store, without a client: it renews them, and says when one is
// lost.
func Example() {
	ctx := context.Background()
	store := memstore.New()
	dog := watchdog.New(store, watchdog.Config{})
	defer dog.Stop()

	ended := make(chan error, 1)
	held := &watchdog.Held{
		Lease:  lease.Lease{Key: "report", Owner: lease.NewOwner()},
		TTL:    300 * time.Millisecond,
		Margin: 100 * time.Millisecond,
		Every:  50 * time.Millisecond,
		Holder: holder{end: func(cause error) { ended <- cause }},
	}
	sent := time.Now() // before the request: a slow answer must not stretch the lease
	got, err := store.Acquire(ctx, []lease.AcquireRequest{
		{Key: held.Key, Owner: held.Owner, TTL: held.TTL},
	})
	if err != nil || !got[0].Granted {
		log.Fatal(got, err)
	}
	held.Token = got[0].Token
	if err := dog.Keep(held, sent); err != nil {
		log.Fatal(err)
	}

	store.Expire("report")
	fmt.Println(errors.Is(<-ended, lease.ErrLost))
	// Output:
	// true
}
