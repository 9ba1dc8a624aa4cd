package striped_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/striped"
)

// A stock in four segments is sold by four callers at a time.
func Example() {
	ctx := context.Background()
	locks, err := rowlock.New(memstore.New(), nil) // or rowlock.Open, on a database
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	stock, err := striped.New(locks, "stock/42", 4)
	if err != nil {
		log.Fatal(err)
	}
	l, err := stock.Any(ctx)
	if err != nil {
		log.Fatal(err)
	}
	segment, ok := stock.Index(l.Key())
	fmt.Println("a segment from 0 to 3:", ok && segment < 4)
	if err := l.Unlock(ctx); err != nil {
		log.Fatal(err)
	}

	// All orders of one customer wait for each other.
	err = locks.Do(ctx, stock.For("customer-1"), func(ctx context.Context, l *rowlock.Lock) error {
		fmt.Println(l.Key())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// a segment from 0 to 3: true
	// stock/42/03
}
