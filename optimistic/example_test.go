package optimistic_test

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
	"github.com/rowlockdb/rowlock/optimistic"
	"github.com/rowlockdb/rowlock/schema"

	_ "modernc.org/sqlite"
)

// database makes a file with rowlock's tables and a table of seats.
func database() (db *sql.DB, done func()) {
	dir, err := os.MkdirTemp("", "rowlock")
	if err != nil {
		log.Fatal(err)
	}
	db, err = sqlite.Open(filepath.Join(dir, "app.db"))
	if err == nil {
		err = schema.Migrate(context.Background(), db, sqlite.New())
	}
	if err == nil {
		_, err = db.Exec(`CREATE TABLE seat (no INTEGER PRIMARY KEY, guest TEXT NOT NULL, rev INTEGER NOT NULL DEFAULT 0);
			INSERT INTO seat (no, guest) VALUES (1, ''), (2, '')`)
	}
	if err != nil {
		log.Fatal(err)
	}
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(dir)
	}
}

type seat struct {
	No    int64  `db:"no,key"`
	Guest string `db:"guest"`
	Rev   int64  `db:"rev,version"`
}

func ExampleTable_Update() {
	db, done := database()
	defer done()
	ctx := context.Background()

	seats, err := optimistic.NewTable[seat](sqlite.New(), "seat")
	if err != nil {
		log.Fatal(err)
	}
	ann, err := seats.Get(ctx, db, 1)
	if err != nil {
		log.Fatal(err)
	}
	bob := ann // has read the same

	ann.Guest = "Ann"
	fmt.Println(seats.Update(ctx, db, &ann), ann.Rev)
	bob.Guest = "Bob"
	err = seats.Update(ctx, db, &bob)
	var conflict *optimistic.ConflictError
	fmt.Println(errors.As(err, &conflict), conflict.Expected, conflict.Found)
	// Output:
	// <nil> 1
	// true 0 1
}

func ExampleTable_Modify() {
	db, done := database()
	defer done()
	ctx := context.Background()

	seats, err := optimistic.NewTable[seat](sqlite.New(), "seat")
	if err != nil {
		log.Fatal(err)
	}
	err = seats.Modify(ctx, db, []any{1, 2}, func(both []*seat) error {
		for _, s := range both {
			if s.Guest != "" {
				return fmt.Errorf("seat %d is taken", s.No)
			}
			s.Guest = "the Millers"
		}
		return nil
	})
	two, _ := seats.Get(ctx, db, 2)
	fmt.Println(err, two.Guest, two.Rev)
	// Output:
	// <nil> the Millers 1
}

func ExampleNew() {
	db, done := database()
	defer done()
	ctx := context.Background()

	store, err := optimistic.New(db, sqlite.New())
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	locks, err := rowlock.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "invoice/42", func(_ context.Context, l *rowlock.Lock) error {
		fmt.Println("working under a token:", l.Token() > 0)
		return nil
	})
	fmt.Println(err)
	// Output:
	// working under a token: true
	// <nil>
}
