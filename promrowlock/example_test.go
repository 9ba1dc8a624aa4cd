package promrowlock_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/promrowlock"
)

func Example() {
	ctx := context.Background()
	collector, err := promrowlock.New(promrowlock.Config{
		KeyClass: func(key string) string {
			class, _, _ := strings.Cut(key, "/")
			return class
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	own := rowlock.Hooks{} // the application's
	locks, err := rowlock.New(memstore.New(), &rowlock.Config{Hooks: collector.Hooks().Then(own)})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	if err := collector.Observe(locks); err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry() // prometheus.DefaultRegisterer, in most programs
	if err := registry.Register(collector); err != nil {
		log.Fatal(err)
	}

	err = locks.Do(ctx, "order/4711", func(context.Context, *rowlock.Lock) error { return nil })
	if err != nil {
		log.Fatal(err)
	}

	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		switch f.GetName() {
		case "rowlock_lock_acquired_total":
			fmt.Println(f.GetName(), f.Metric[0].Counter.GetValue())
		case "rowlock_lock_wait_duration_seconds":
			for _, m := range f.Metric {
				fmt.Printf("%s %q %d\n", f.GetName(), m.Label[0].GetValue(), m.Histogram.GetSampleCount())
			}
		}
	}
	// Output:
	// rowlock_lock_acquired_total 1
	// rowlock_lock_wait_duration_seconds "" 0
	// rowlock_lock_wait_duration_seconds "order" 1
}
