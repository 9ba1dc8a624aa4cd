package forupdate_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/schema"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// database is a new one, with rowlock's tables. Transactions begin with the write lock.
func database() (db *sql.DB, remove func()) {
	dir, err := os.MkdirTemp("", "forupdate")
	must(err)
	db, err = sqlite.Open(filepath.Join(dir, "app.db"))
	must(err)
	must(schema.Migrate(context.Background(), db, sqlite.New()))
	return db, func() { _ = db.Close(); _ = os.RemoveAll(dir) }
}

func ExampleLocker_Lock() {
	db, remove := database()
	defer remove()
	ctx := context.Background()
	locker, err := forupdate.NewLocker(db, sqlite.New())
	must(err)
	defer locker.Close()

	tx, err := db.BeginTx(ctx, nil)
	must(err)
	defer tx.Rollback()
	must(locker.Lock(ctx, tx, "invoice/42", "customer/7")) // first of all
	// Read and write what the keys stand for: no other caller that locks them does so until the
	// transaction ends.
	must(tx.Commit())
	fmt.Println("done, and unlocked")
	// Output: done, and unlocked
}

func ExampleLocker_Pick() {
	db, remove := database()
	defer remove()
	ctx := context.Background()
	_, err := db.ExecContext(ctx, `CREATE TABLE jobs (id INTEGER PRIMARY KEY, task TEXT); INSERT INTO jobs VALUES (1, 'mail'), (2, 'bill'), (3, 'ship')`)
	must(err)
	locker, err := forupdate.NewLocker(db, sqlite.New())
	must(err)
	defer locker.Close()

	tx, err := db.BeginTx(ctx, nil)
	must(err)
	defer tx.Rollback()
	var jobs []struct {
		ID   int64  `db:"id"`
		Task string `db:"task"`
	}
	must(locker.Pick(ctx, tx, &jobs, forupdate.Queue{Table: "jobs", OrderBy: "id", Limit: 2}))
	for _, job := range jobs {
		fmt.Println(job.ID, job.Task)
		_, err := tx.ExecContext(ctx, `DELETE FROM jobs WHERE id = ?`, job.ID)
		must(err)
	}
	must(tx.Commit())
	// Output:
	// 1 mail
	// 2 bill
}
