package once_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/schema"
)

// An order that is sent twice is made once, and both are answered the same.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "once")
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
	if _, err := db.ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)`); err != nil {
		log.Fatal(err)
	}
	o, err := once.New(db, sqlite.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer o.Close()

	order := func(key, item string) {
		req := once.Request{Tenant: "shop-1", Key: key, Fingerprint: once.Fingerprint([]byte(item))}
		res, err := o.Do(ctx, req, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			made, err := tx.ExecContext(ctx, `INSERT INTO orders (item) VALUES (?)`, item)
			if err != nil {
				return nil, err
			}
			id, err := made.LastInsertId()
			return fmt.Appendf(nil, "order %d: %s", id, item), err
		})
		if errors.Is(err, once.ErrMismatch) {
			fmt.Println("refused: another order has this key")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s, replayed: %t\n", res.Value, res.Replayed)
	}
	order("req-7", "a book")
	order("req-7", "a book")
	order("req-7", "two books")
	order("req-8", "two books")
	// Output:
	// order 1: a book, replayed: false
	// order 1: a book, replayed: true
	// refused: another order has this key
	// order 2: two books, replayed: false
}

// A request that needs a lock gives it to Do, and unlocks after the commit.
func ExampleRequest_lock() {
	pay := func(ctx context.Context, locks *rowlock.Client, o *once.Once, order once.Func) error {
		l, err := locks.Lock(ctx, "account/7")
		if err != nil {
			return err
		}
		defer l.Unlock(ctx)
		res, err := o.Do(ctx, once.Request{Key: "order-1", Lock: l}, order)
		fmt.Printf("%s\n", res.Value)
		return err
	}
	_ = pay
}
