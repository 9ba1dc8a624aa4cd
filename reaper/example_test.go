package reaper_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/reaper"
)

// A client sweeps by itself. A process that should not, as a short-lived one, turns it off.
func ExampleConfig() {
	locks, err := rowlock.New(memstore.New(), &rowlock.Config{Reaper: reaper.Config{Off: true}})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	// Output:
}

// Clients have Reaper.Off, and a job that runs at night sweeps. Its election is always won here,
// because there is one such job.
func ExampleReaper_Once() {
	ctx := context.Background()
	store := memstore.New()
	locks, err := rowlock.New(store, &rowlock.Config{Reaper: reaper.Config{Off: true}})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	for _, key := range []string{"order/1", "order/2"} {
		l, err := locks.Lock(ctx, key)
		if err != nil {
			log.Fatal(err)
		}
		if err := l.Unlock(ctx); err != nil {
			log.Fatal(err)
		}
	}

	elect := func(ctx context.Context) (context.Context, func(), error) {
		return ctx, func() {}, nil
	}
	r := reaper.Start(store, elect, reaper.Config{
		Every:     24 * time.Hour, // Once does it
		Retention: time.Nanosecond,
	}, slog.Default())
	defer r.Stop()
	removed, err := r.Once(ctx)
	fmt.Println(removed, err)
	// Output:
	// 2 <nil>
}
